//! How series look: a colour, a dash and a marker each, so that no two are distinguished by colour alone.
//!
//! Where the reader chooses among all series of a page, each keeps its style, and those of one mechanism share a colour
//! ([`LineStyles`]). The lines of one figure have a colour each, as far as there are colours ([`lines`]).
//!
//! It draws nothing: the page, the SVG and the terminal take what they can show of it.

use std::collections::BTreeSet;

/// Colours that differ for every kind of colour vision, and stand out on white and on black (after Okabe and Ito).
pub(crate) const COLORS: [&str; 8] =
    ["#0a7bc2", "#d55e00", "#009e73", "#c9659d", "#8f8b00", "#7f62d1", "#868e96", "#9a5b33"];

/// How one series looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineStyle {
    /// As CSS has it.
    pub(crate) color: &'static str,
    /// The line.
    pub(crate) dash: Dash,
    /// The points.
    pub(crate) marker: Marker,
}

/// A kind of line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dash {
    Solid,
    Short,
    Dot,
    Mixed,
    Long,
}

impl Dash {
    const ALL: [Dash; 5] = [Dash::Solid, Dash::Short, Dash::Dot, Dash::Mixed, Dash::Long];

    /// As plotly calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Dash::Solid => "solid",
            Dash::Short => "dash",
            Dash::Dot => "dot",
            Dash::Mixed => "dashdot",
            Dash::Long => "longdash",
        }
    }

    /// Lengths on and off, in points.
    pub(crate) fn pattern(self) -> &'static [f32] {
        match self {
            Dash::Solid => &[],
            Dash::Short => &[7.0, 4.0],
            Dash::Dot => &[2.0, 3.0],
            Dash::Mixed => &[7.0, 3.0, 2.0, 3.0],
            Dash::Long => &[12.0, 4.0],
        }
    }
}

/// A kind of point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marker {
    Circle,
    Square,
    Diamond,
    Up,
    Down,
    Cross,
    X,
}

impl Marker {
    const ALL: [Marker; 7] =
        [Marker::Circle, Marker::Square, Marker::Diamond, Marker::Up, Marker::Down, Marker::Cross, Marker::X];

    /// As plotly calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Marker::Circle => "circle",
            Marker::Square => "square",
            Marker::Diamond => "diamond",
            Marker::Up => "triangle-up",
            Marker::Down => "triangle-down",
            Marker::Cross => "cross",
            Marker::X => "x",
        }
    }

    /// As a character, for legends in text.
    pub(crate) fn sign(self) -> char {
        match self {
            Marker::Circle => '●',
            Marker::Square => '■',
            Marker::Diamond => '◆',
            Marker::Up => '▲',
            Marker::Down => '▼',
            Marker::Cross => '✚',
            Marker::X => '✖',
        }
    }
}

/// The styles of the lines of one figure by their `names`, in that order; lines of one name look alike. Colours, and
/// markers with dashes, come round again at different lengths, so that both the eye that sees colours and the one that
/// does not tell some dozens of lines apart.
pub(crate) fn lines<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<LineStyle> {
    let mut known: Vec<&str> = Vec::new();
    let mut place = |name: &'a str| {
        known.iter().position(|other| *other == name).unwrap_or_else(|| {
            known.push(name);
            known.len() - 1
        })
    };
    let style = |at: usize| LineStyle {
        color: COLORS[at % COLORS.len()],
        dash: Dash::ALL[at / Marker::ALL.len() % Dash::ALL.len()],
        marker: Marker::ALL[at % Marker::ALL.len()],
    };
    names.into_iter().map(|name| style(place(name))).collect()
}

/// The styles of series by their names. A mechanism has one colour, whatever its parameters.
pub(crate) struct LineStyles {
    names: Vec<String>,
    mechanisms: Vec<String>,
}

impl LineStyles {
    /// The styles of all of `names`. Mechanisms have colours in the order in which they come, so that those that stand
    /// together differ before colours come round again.
    pub(crate) fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut mechanisms: Vec<String> = Vec::new();
        let mut all = BTreeSet::new();
        for name in names {
            let own = mechanism(name);
            if !mechanisms.iter().any(|known| known == own) {
                mechanisms.push(own.to_owned());
            }
            all.insert(name);
        }
        Self { names: all.into_iter().map(str::to_owned).collect(), mechanisms }
    }

    /// Every name, in order.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The place of `name` among the names, and of its mechanism's first; 0 of an unknown name.
    pub(crate) fn at(&self, name: &str) -> usize {
        self.names.binary_search_by(|known| known.as_str().cmp(name)).unwrap_or(0)
    }

    /// The style of `name`.
    pub(crate) fn style(&self, name: &str) -> LineStyle {
        let own = mechanism(name);
        let color = self.mechanisms.iter().position(|known| known == own).unwrap_or(0);
        let first = self.names.iter().position(|known| mechanism(known) == own).unwrap_or(0);
        let variant = self.at(name).saturating_sub(first);
        LineStyle {
            color: COLORS[color % COLORS.len()],
            dash: Dash::ALL[variant % Dash::ALL.len()],
            marker: Marker::ALL[(color + variant) % Marker::ALL.len()],
        }
    }
}

/// The name without parameters.
fn mechanism(name: &str) -> &str {
    name.split([':', ' ']).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mechanism_has_one_colour_and_its_variants_differ() {
        let styles = LineStyles::of(["shm-ring:wait=spin", "pipe", "shm-ring", "shm-ring:wait=futex"]);
        let [ring, spin, pipe] = ["shm-ring", "shm-ring:wait=spin", "pipe"].map(|name| styles.style(name));
        assert_eq!(ring.color, spin.color);
        assert_ne!((ring.dash, ring.marker), (spin.dash, spin.marker));
        assert_ne!(ring.color, pipe.color);
    }

    #[test]
    fn what_stands_together_differs_in_colour() {
        let first = ["pipe", "fifo", "tcp", "udp", "shm-ring", "unix-stream", "unix-dgram", "eventfd"];
        let styles = LineStyles::of(first.into_iter().chain(["a", "b", "c", "tcp", "memcpy", "syscall"]));
        let colors: BTreeSet<&str> = first.iter().map(|name| styles.style(name).color).collect();
        assert_eq!(colors.len(), first.len());
    }

    #[test]
    fn lines_of_one_figure_differ_in_colour_and_without_it() {
        let semaphores =
            ["pipe", "shared memory, System V semaphores", "shared memory, POSIX semaphores", "pipe"];
        let [pipe, sysv, posix, published] = lines(semaphores)[..] else { panic!() };
        assert!(sysv.color != posix.color && sysv.marker != posix.marker && pipe.color != sysv.color);
        assert_eq!(pipe, published);

        let names: Vec<String> = (0..35).map(|nth| format!("line {nth}")).collect();
        let styles = lines(names.iter().map(String::as_str));
        for (at, style) in styles.iter().enumerate() {
            for other in &styles[..at] {
                assert_ne!((style.dash, style.marker), (other.dash, other.marker), "in black and white");
            }
            assert!(at >= COLORS.len() || styles[..at].iter().all(|other| other.color != style.color));
        }
    }

    #[test]
    fn no_two_colours_are_alike() {
        let channels =
            |color: &str| [1, 3, 5].map(|at| f64::from(u8::from_str_radix(&color[at..at + 2], 16).unwrap()));
        for (at, a) in COLORS.iter().enumerate() {
            for b in &COLORS[..at] {
                let (one, other) = (channels(a), channels(b));
                let distance = (0..3).map(|at| (one[at] - other[at]).powi(2)).sum::<f64>().sqrt();
                assert!(distance > 70.0, "{a} and {b}: {distance}");
            }
        }
    }
}
