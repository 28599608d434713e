//! Flame graphs: where samples lie among the functions that led there, of one set of stacks or of two compared.
//!
//! Stacks are written folded, the form that flame graph tools exchange: `main;read;vfs_read_[k] 12`. The drawing is
//! the `inferno` library's; what is here gives it stacks in a fixed order, so that the same stacks give the same bytes.

use crate::words::clean;
use inferno::differential;
use inferno::flamegraph::color::{BackgroundColor, Color, MultiPalette, Palette, StrokeColor};
use inferno::flamegraph::{self, Options, TextTruncateDirection};
use model::observation::{SampledStack, StackFrame};
use std::collections::BTreeMap;

/// What a frame is called that has no name.
const NAMELESS: &str = "[unknown]";
/// What the library draws all the same for the script that is left out: what it would have read, and what one would click.
const DEAD: [(&str, &str); 3] =
    [("<script", "</script>"), ("<text id=\"unzoom\"", "</text>"), ("<text id=\"search\"", "</text>")];

/// `stacks` folded: a line for each different one, in the order of the alphabet.
pub fn folded(stacks: &[SampledStack]) -> String {
    let mut samples: BTreeMap<String, u64> = BTreeMap::new();
    for stack in stacks.iter().filter(|stack| stack.samples > 0) {
        let names: Vec<String> = stack.frames.iter().map(frame_name).collect();
        let line = if names.is_empty() { NAMELESS.to_owned() } else { names.join(";") };
        *samples.entry(line).or_default() += stack.samples;
    }
    samples.into_iter().map(|(line, samples)| format!("{line} {samples}\n")).collect()
}

/// A frame's name as folded stacks can hold it: on one line, without what separates frames.
fn frame_name(frame: &StackFrame) -> String {
    let (name, suffix) = match frame {
        StackFrame::Kernel(name) => (name.clone(), "_[k]"),
        StackFrame::KernelAddress(address) => (format!("{address:#x}"), "_[k]"),
        StackFrame::User(name) => (name.clone(), ""),
        StackFrame::FileOffset { path, offset } => {
            let file = path.rsplit('/').next().unwrap_or_default();
            (format!("[{file}+{offset:#x}]"), "")
        }
    };
    let name = clean(name.trim()).replace(';', ":");
    format!("{}{suffix}", if name.is_empty() { NAMELESS } else { &name })
}

/// The flame graph of `stacks` as SVG, which says whose they are, such as `client, pipe, latency, 64`. Without samples there
/// is none.
pub fn flame_graph(stacks: &[SampledStack], whose: &str) -> Option<String> {
    draw(&mut of_endpoint(whose, "kernel in orange; click to zoom, Ctrl-F to search"), &folded(stacks))
}

/// The same as a picture only, for places in which its script could not run.
pub(crate) fn flame_picture(stacks: &[SampledStack], whose: &str) -> Option<String> {
    let mut options = of_endpoint(whose, "kernel in orange");
    options.no_javascript = true;
    let mut picture = draw(&mut options, &folded(stacks))?;
    for (begin, end) in DEAD {
        picture = without(&picture, begin, end);
    }
    Some(picture)
}

/// `text` without what stands from `begin` to `end`, both included, where it stands first.
fn without(text: &str, begin: &str, end: &str) -> String {
    let cut = || {
        let (before, rest) = text.split_once(begin)?;
        Some(format!("{before}{}", rest.split_once(end)?.1))
    };
    cut().unwrap_or_else(|| text.to_owned())
}

fn of_endpoint<'a>(whose: &str, subtitle: &str) -> Options<'a> {
    let mut options = options(whose, subtitle);
    options.colors = Palette::Multi(MultiPalette::Java);
    options
}

/// The flame graph of `after` as SVG, coloured by what is different in `before`; `whose` says of each whose it is. The
/// samples of `before` are scaled, so that both have as many; what `before` alone has is not drawn. Without samples in both there is none.
pub fn flame_graph_difference(
    before: &[SampledStack],
    after: &[SampledStack],
    whose: [&str; 2],
) -> Option<String> {
    let [before_folded, after_folded] = [before, after].map(folded);
    if before_folded.is_empty() || after_folded.is_empty() {
        return None;
    }
    let how = differential::Options { normalize: true, strip_hex: false };
    let mut both = Vec::new();
    differential::from_readers(how, before_folded.as_bytes(), after_folded.as_bytes(), &mut both).ok()?;
    let [before, after] = whose.map(clean);
    let subtitle = format!("red: more of the time than in {before}; blue: less");
    draw(&mut options(&after, &subtitle), &String::from_utf8(both).ok()?)
}

fn options<'a>(title: &str, subtitle: &str) -> Options<'a> {
    let mut options = Options::default();
    options.title = clean(title);
    options.subtitle = Some(subtitle.to_owned());
    options.bgcolors = Some(BackgroundColor::Flat(Color::new(255, 255, 255)));
    options.deterministic = true;
    // Names are distinguished by how they begin, and what has not changed is white in a comparison.
    options.text_truncate_direction = TextTruncateDirection::Right;
    options.stroke_color = StrokeColor::Color(Color::new(200, 205, 210));
    options
}

fn draw(options: &mut Options<'_>, folded: &str) -> Option<String> {
    let mut svg = Vec::new();
    flamegraph::from_lines(options, folded.lines(), &mut svg).ok()?;
    String::from_utf8(svg).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stack(frames: &[StackFrame], samples: u64) -> SampledStack {
        SampledStack { frames: frames.to_vec(), samples }
    }

    fn user(name: &str) -> StackFrame {
        StackFrame::User(name.to_owned())
    }

    fn kernel(name: &str) -> StackFrame {
        StackFrame::Kernel(name.to_owned())
    }

    fn pipe() -> Vec<SampledStack> {
        let read = [user("main"), user("read"), kernel("do_syscall_64"), kernel("vfs_read")];
        vec![
            stack(&[user("main"), user("write")], 20),
            stack(&read, 30),
            stack(&read[..2], 10),
            stack(&read, 40),
        ]
    }

    fn unix_stream() -> Vec<SampledStack> {
        let read = [user("main"), user("read"), kernel("do_syscall_64"), kernel("unix_stream_read_generic")];
        vec![stack(&read, 150), stack(&[user("main"), user("write")], 50)]
    }

    #[test]
    fn stacks_are_folded_and_added_up() {
        let mut stacks = pipe();
        let offset = StackFrame::FileOffset { path: "/usr/lib/libc.so.6".to_owned(), offset: 0x1f0 };
        stacks.extend([
            stack(&[offset, StackFrame::KernelAddress(0xffff_8000)], 3),
            stack(&[], 1),
            stack(&[user(" a;b\n"), user("")], 2),
            stack(&[user("never")], 0),
        ]);
        let expected = "[libc.so.6+0x1f0];0xffff8000_[k] 3\n\
                        [unknown] 1\n\
                        a:b;[unknown] 2\n\
                        main;read 10\n\
                        main;read;do_syscall_64_[k];vfs_read_[k] 70\n\
                        main;write 20\n";
        assert_eq!(folded(&stacks), expected);
    }

    #[test]
    fn the_graph_has_every_frame_and_says_whose_it_is() {
        let svg = flame_graph(&pipe(), "client, pipe, latency, 64").unwrap();
        for text in
            ["client, pipe, latency, 64", "main (100 samples, 100.00%)", "vfs_read (70 samples, 70.00%)"]
        {
            assert!(svg.contains(text), "{text}");
        }
        let mut turned = pipe();
        turned.reverse();
        assert_eq!(flame_graph(&turned, "client, pipe, latency, 64").unwrap(), svg, "order does not matter");
        assert_eq!(flame_graph(&[], "client"), None);
    }

    #[test]
    fn a_picture_has_no_controls_and_all_frames() {
        let frames = |svg: &str| svg.matches("<title>").count();
        let (graph, picture) =
            (flame_graph(&pipe(), "client").unwrap(), flame_picture(&pipe(), "client").unwrap());
        for control in ["Search", "Reset Zoom", "<script"] {
            assert!(graph.contains(control) && !picture.contains(control), "{control}: {picture}");
        }
        assert_eq!(frames(&picture), frames(&graph));
        assert_eq!(picture.matches("<text").count(), picture.matches("</text>").count());
        assert_eq!(flame_picture(&[], "client"), None);
    }

    #[test]
    fn the_difference_is_in_the_scaled_samples() {
        let svg =
            flame_graph_difference(&pipe(), &unix_stream(), ["client, pipe", "client, unix-stream"]).unwrap();
        // Twice as many samples: 20 of 100 became 50 of 200, which are 5% more.
        for text in [
            "client, unix-stream",
            "more of the time than in client, pipe",
            "write (50 samples, 25.00%; +5.00%)",
            "unix_stream_read_generic (150 samples",
        ] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
        let again = flame_graph_difference(&pipe(), &unix_stream(), ["client, pipe", "client, unix-stream"]);
        assert_eq!(again.as_deref(), Some(svg.as_str()));
        assert_eq!(flame_graph_difference(&pipe(), &[], ["a", "b"]), None);
    }

    #[test]
    fn hostile_names_are_escaped() {
        let stacks = [stack(&[user("<script>alert(1)</script>&\"'\u{202e}"), kernel("]]>-->")], 5)];
        let drawings = [
            flame_graph(&stacks, "</title><script>").unwrap(),
            flame_graph_difference(&stacks, &stacks, ["<b>", "</text><script>"]).unwrap(),
        ];
        for svg in drawings {
            assert!(svg.contains("&lt;script&gt;alert(1)&lt;/script&gt;&amp;"), "{svg}");
            assert!(!svg.contains("<script>") && !svg.contains("<b>") && !svg.contains('\u{202e}'), "{svg}");
        }
    }

    proptest! {
        #[test]
        fn folded_lines_are_as_many_frames_as_there_were(names in proptest::collection::vec(any::<String>(), 1..6)) {
            let frames: Vec<StackFrame> = names.iter().map(|name| user(name)).collect();
            let folded = folded(&[stack(&frames, 7)]);
            let (line, samples) = folded.trim_end_matches('\n').rsplit_once(' ').unwrap();
            prop_assert_eq!((line.split(';').count(), samples), (names.len(), "7"));
            prop_assert_eq!(folded.lines().count(), 1);
        }
    }
}
