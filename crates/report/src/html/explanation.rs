//! Explanations as one HTML file that opens by itself. It says what the terminal says, in the same words, and draws beside
//! it where the time of iterations goes, what single iterations look like, and where samples lie.
//!
//! Nothing on the page runs: it has no script, and its policy allows none. What comes from outside reaches it through the
//! template language, which escapes it, or through the writers of SVG, which do too.

use super::document::Document;
use super::template::tight_cell;
use crate::svg::flame::flame_picture;
use crate::svg::sums::{Bars, sums};
use crate::svg::timeline::timeline_element;
use crate::text::block::grouped;
use crate::text::explanation::{
    ABSENCES_HEADING, BENDS_HEADING, ExplanationWords, REASONS_HEADING, TRIES_HEADING, bends, in_words,
};
use crate::text::explanation_tables::side_by_side;
use crate::text::grid::Grid;
use crate::text::marks::MISSED_HEADING;
use crate::words::{clean, width};
use analysis::analysed::{AnalysedExplanation, AnalysedTimeline};
use analysis::explain::{Explanation, SizeCurve};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, PreEscaped, html};
use model::Endpoints;
use model::observation::SampledStack;

/// A longer cell is words.
const LONGEST_NUMBER: usize = 22;
pub(super) const OWN_STYLE: &str = include_str!("explanation.css");

/// The page of `all`, and of the `curves` that they make, made by `command`.
pub fn explanation_html(all: &[AnalysedExplanation<'_>], curves: &[SizeCurve], command: &[String]) -> String {
    let cases = all.iter().enumerate();
    let body = html! {
        @if all.len() > 1 { (overview(all)) }
        @if !curves.is_empty() { (bent(curves)) }
        @for (at, explanation) in cases { (one(at, explanation)) }
    };
    Document {
        title: &title(all),
        heading: "Why it costs what it does",
        style: OWN_STYLE,
        has_images: true,
        body,
        command,
    }
    .html()
}

fn title(all: &[AnalysedExplanation<'_>]) -> String {
    match all {
        [one] => format!("ipcmark: {}, explained", clean(&one.explanation.case.key())),
        _ => format!("ipcmark: {} cases explained", all.len()),
    }
}

/// The link to the case at `at`.
fn anchor(at: usize) -> String {
    format!("case-{}", at + 1)
}

/// All cases side by side: where their iterations go, and what each takes.
fn overview(all: &[AnalysedExplanation<'_>]) -> Markup {
    html! {
        @for (place, cases) in by_place(all) {
            section {
                h2 { "where the time goes: " (place) }
                figure.iterations { (PreEscaped(sums(&by_mechanism(&cases)))) }
                div.card.sums { (table(&side_by_side(&cases))) }
            }
        }
        nav aria-labelledby="cases" {
            h2 #cases { "the cases" }
            ul.cases {
                @for (at, words) in all.iter().map(in_words).enumerate() {
                    li { a href={ "#" (anchor(at)) } { (words.case) } " " span.quiet { (words.head) } }
                }
            }
        }
    }
}

/// Where the curves over sizes bend.
fn bent(curves: &[SizeCurve]) -> Markup {
    html! {
        section.card {
            h2 { (BENDS_HEADING) }
            dl { @for (case, bends) in bends(curves) { dt { (case) } dd { (bends) } } }
        }
    }
}

/// The explanations that have a path, by what their iterations do and where.
fn by_place<'a>(all: &[AnalysedExplanation<'a>]) -> Vec<(String, Vec<&'a Explanation>)> {
    let sums =
        all.iter().map(|analysed| analysed.explanation).filter(|explanation| explanation.path.is_some());
    grouped(sums.map(|explanation| {
        let case = &explanation.case;
        let threads = if case.endpoints == Endpoints::Threads { ", threads" } else { "" };
        (format!("{}, {}{threads}", case.workload, case.placement), explanation)
    }))
}

/// The bars of `cases`: those of a mechanism together, each called by its size.
fn by_mechanism<'a>(cases: &[&'a Explanation]) -> Vec<Bars<'a>> {
    let bars = cases.iter().filter_map(|explanation| {
        let size = explanation.case.size_bytes.map(|size| size.to_string()).unwrap_or_default();
        Some((clean(&explanation.case.spec.to_string()), (size, explanation.path.as_ref()?)))
    });
    grouped(bars).into_iter().map(|(heading, bars)| Bars { heading, bars }).collect()
}

/// All of one case.
fn one(at: usize, analysed: &AnalysedExplanation<'_>) -> Markup {
    let explanation = analysed.explanation;
    let ExplanationWords { case, head, settings, reasons, tries, tables, absences, .. } = in_words(analysed);
    let bar = explanation.path.as_ref();
    let bar = bar.map(|sum| sums(&[Bars { heading: String::new(), bars: vec![(String::new(), sum)] }]));
    html! {
        section.case id=(anchor(at)) aria-labelledby={ (anchor(at)) "-name" } {
            h2.as-is id={ (anchor(at)) "-name" } { (case) }
            p.head { (head) }
            (sentences(MISSED_HEADING, &settings))
            (sentences(REASONS_HEADING, &reasons))
            (sentences(TRIES_HEADING, &tries))
            @if let Some(bar) = bar { figure.iterations { (PreEscaped(bar)) } }
            div.tables {
                @for grid in &tables { div.card { (table(grid)) } }
            }
            @if let Some(timeline) = &analysed.timeline { (timelines(&case, timeline)) }
            (flames(&case, &explanation.stacks))
            @if !absences.is_empty() {
                h3 { (ABSENCES_HEADING) }
                dl { @for (what, why) in &absences { dt { (what) } dd { (why) } } }
            }
        }
    }
}

/// Sentences under a heading; nothing where there are none.
fn sentences(heading: &str, all: &[String]) -> Markup {
    html! {
        @if !all.is_empty() {
            h3 { (heading) }
            ul.said { @for sentence in all { li { (sentence) } } }
        }
    }
}

/// A grid as a table, with what is to be said under it.
pub(super) fn table(grid: &Grid) -> Markup {
    html! {
        h3 { (grid.heading) }
        @if !grid.rows.is_empty() {
            div.scroll {
                table {
                    thead { tr { td {} @for column in &grid.columns { th scope="col" { (column) } } } }
                    tbody {
                        @for (name, cells) in &grid.rows {
                            tr { th scope="row" { (name) } @for cell in cells { (data(cell)) } }
                        }
                    }
                }
            }
        }
        @for text in &grid.below { p.below { (text) } }
    }
}

/// A cell; words, unlike numbers, may go on below.
fn data(cell: &str) -> Markup {
    let cell = tight_cell(cell);
    html! { td.prose[width(&cell) > LONGEST_NUMBER] { (cell) } }
}

/// Typical iterations and a slow one, moment by moment.
fn timelines(case: &str, timeline: &AnalysedTimeline<'_>) -> Markup {
    html! {
        @if !timeline.iterations.is_empty() {
            h3 { "single iterations" }
            div.pictures {
                @for iteration in &timeline.iterations {
                    figure { div.picture { (PreEscaped(timeline_element(iteration, case))) } }
                }
            }
        }
    }
}

/// Where samples lie, endpoint by endpoint. As images, so that nothing in them can run or reach the page.
fn flames(case: &str, stacks: &[Vec<SampledStack>; 2]) -> Markup {
    let picture = |(endpoint, stacks): (&'static str, &Vec<SampledStack>)| {
        let samples: u64 = stacks.iter().map(|stack| stack.samples).sum();
        let picture = flame_picture(stacks, &format!("{endpoint}, {case}"))?;
        let text = format!("flame graph of the {endpoint}, {case}: {samples} samples");
        Some((text, format!("data:image/svg+xml;base64,{}", STANDARD.encode(picture))))
    };
    let pictures: Vec<(String, String)> =
        ["client", "server"].into_iter().zip(stacks).filter_map(picture).collect();
    html! {
        @if !pictures.is_empty() {
            h3 { "where samples lie" }
            div.flames {
                @for (text, picture) in &pictures {
                    figure { div.picture { img src=(picture) alt=(text); } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::template::escape;
    use super::*;
    use crate::explained::{explanation, hostile, without_privileges};
    use crate::html::template::tight_cell as tight;
    use crate::observed;
    use analysis::explain::{Knee, Landmark};

    fn analysed(all: &[Explanation]) -> Vec<AnalysedExplanation<'_>> {
        all.iter().map(|one| AnalysedExplanation::from_explanation(one, observed::call_name)).collect()
    }

    fn page(all: &[Explanation]) -> String {
        page_with(all, &[])
    }

    fn page_with(all: &[Explanation], curves: &[SizeCurve]) -> String {
        let command = ["ipcmark", "explain", "a pipe", "--html", "why.html"].map(str::to_owned);
        explanation_html(&analysed(all), curves, &command)
    }

    #[test]
    fn knees_are_told_with_what_lies_there() {
        let one = explanation("pipe", 64, 2_800.0);
        let landmark = Landmark { name: "<b>page</b>".to_owned(), bytes: 4096 };
        let knee = Knee {
            at_bytes: 4096,
            from_bytes: 2048,
            until_bytes: 8192,
            before: 0.1,
            after: 0.9,
            within: vec![landmark],
            beside: Vec::new(),
        };
        let curves = [
            SizeCurve { case: one.case.clone(), knees: Some(vec![knee]) },
            SizeCurve { case: one.case.clone(), knees: Some(Vec::new()) },
            SizeCurve { case: one.case.clone(), knees: None },
        ];
        let page = page_with(&[one], &curves);
        for text in [
            "at 4K (2K to 8K) the slope changes from 0.10 to 0.90; there: &lt;b&gt;page&lt;/b&gt;.",
            "nowhere: the curve is a straight line",
            "too few sizes: give at least six",
        ] {
            assert!(page.contains(text), "{text}: {page}");
        }
    }

    #[test]
    fn the_page_says_all_that_the_terminal_says() {
        let all = [explanation("pipe", 64, 2_800.0), without_privileges("shm-ring:wait=spin", 64, 410.0)];
        let page = page(&all);
        let has = |text: &str| page.contains(&escape(text));
        let says = |text: &str| assert!(has(text) || has(&tight(text)), "{text}: {page}");
        for explanation in &analysed(&all) {
            let words = in_words(explanation);
            [&words.case, &words.head]
                .into_iter()
                .chain(&words.settings)
                .chain(&words.reasons)
                .chain(&words.tries)
                .for_each(|text| says(text));
            words.absences.iter().for_each(|(what, why)| (says(what), says(why)).0);
            for grid in &words.tables {
                says(&grid.heading);
                grid.columns.iter().chain(&grid.below).for_each(|text| says(text));
                grid.rows
                    .iter()
                    .for_each(|(name, cells)| (says(name), cells.iter().for_each(|cell| says(cell))).0);
            }
        }
        says("ipcmark explain 'a pipe' --html why.html");
    }

    #[test]
    fn cases_stand_side_by_side_only_where_there_are_several() {
        let one = [explanation("pipe", 64, 2_800.0)];
        assert!(!page(&one).contains("<nav"));
        let mut several =
            vec![one[0].clone(), explanation("pipe", 4096, 4_100.0), explanation("shm-ring", 64, 410.0)];
        let without_path = Explanation { path: None, ..explanation("tcp", 64, 9_000.0) };
        several.push(without_path);
        let page = page(&several);
        for at in 1..=4 {
            assert!(
                page.contains(&format!("href=\"#case-{at}\"")) && page.contains(&format!("id=\"case-{at}\""))
            );
        }
        assert!(page.contains("where the time goes: latency, same-core"));
        assert_eq!(
            page.matches("where the time of iterations goes, as stacked bars").count(),
            1 + 3,
            "one has no path"
        );
    }

    #[test]
    fn it_is_written_over_a_page_and_brings_all_with_it() {
        let page = page(&[explanation("pipe", 64, 2_800.0)]);
        assert!(page.starts_with("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset"));
        assert_eq!(
            page.matches("src=\"data:image/svg+xml;base64,").count(),
            2,
            "client's and server's flame graph"
        );
        assert!(page.contains("typical: 14.2 µs") && page.contains("slowest of 5"));
        assert!(!page.contains("<script") && !page.contains("<?xml") && !page.contains("{{"));
    }

    #[test]
    fn no_two_things_on_it_have_one_name() {
        let page = page(&[explanation("pipe", 64, 2_800.0), explanation("pipe", 4096, 4_100.0)]);
        let mut ids: Vec<&str> =
            page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all, "{ids:?}");
        // Two typical iterations and a slow one of each case, none of which refers to anything by its name.
        assert_eq!(page.matches("<title>pipe latency ").count(), 6);
        assert!(!page.contains("url(#"));
    }

    #[test]
    fn no_text_becomes_markup() {
        for text in [
            "<script>alert(1)</script>",
            "\"><img src=x onerror=alert(1)>",
            "</style></title>&{{body}}",
            "a\u{202e}b",
        ] {
            let page = page(&[hostile(text), hostile(text)]);
            assert!(!page.contains('\u{202e}'), "{text}");
            for markup in ["<script", "<img src=x", "</style></title>"] {
                assert!(!page.contains(markup), "{text}");
            }
            assert_eq!(page.matches("<main>").count(), 1, "{text}");
        }
    }
}
