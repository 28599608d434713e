//! How series look: a colour, a dash and a marker each, so that no two are distinguished by colour alone.
//!
//! A series has one style on the page, in each SVG and in each PNG of the same results, and those of one mechanism share a colour.
//!
//! It draws nothing: the page, the SVG and the terminal take what they can show of it.

use std::collections::{BTreeMap, BTreeSet};

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

/// A line or a row that is drawn somewhere, and what it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Series {
    /// What has one colour whatever its parameters: a mechanism, or what a study names alone.
    pub(crate) mechanism: String,
    /// What it is called where it is drawn.
    pub(crate) name: String,
}

/// The style of each series of a page and its pictures, by its name.
pub(crate) struct LineStyles(BTreeMap<String, LineStyle>);

impl LineStyles {
    /// The styles of all series of `pictures`, of each of which the lines should differ. Mechanisms have colours in the order of
    /// `first`, then in that in which they come. Where colours come round again, those that share a picture differ as far as
    /// they can, and so do dashes with markers, for the eye that sees no colours.
    pub(crate) fn for_pictures(first: &[String], pictures: &[Vec<Series>]) -> Self {
        let mut places: BTreeMap<&Series, BTreeSet<usize>> = BTreeMap::new();
        for (at, picture) in pictures.iter().enumerate() {
            picture.iter().for_each(|series| places.entry(series).or_default().extend([at]));
        }
        let mut mechanisms: Vec<&str> = Vec::new();
        for name in first.iter().chain(pictures.iter().flatten().map(|series| &series.mechanism)) {
            if !mechanisms.contains(&name.as_str()) {
                mechanisms.push(name);
            }
        }
        let mut colors = Taken::<{ COLORS.len() }>::for_pictures(pictures.len());
        let mut forms = Taken::<{ Dash::ALL.len() * Marker::ALL.len() }>::for_pictures(pictures.len());
        let mut styles = BTreeMap::new();
        for mechanism in mechanisms {
            let own = || places.iter().filter(|(series, _)| series.mechanism == mechanism);
            let Some(nth) = colors.take(&own().flat_map(|(_, places)| places.clone()).collect(), 0) else {
                continue;
            };
            for (variant, (series, places)) in own().enumerate() {
                let wanted = variant * Marker::ALL.len() + nth % Marker::ALL.len();
                let Some(form) = forms.take(places, wanted) else { continue };
                let dash = Dash::ALL[form / Marker::ALL.len()];
                let marker = Marker::ALL[form % Marker::ALL.len()];
                styles.insert(series.name.clone(), LineStyle { color: COLORS[nth], dash, marker });
            }
        }
        Self(styles)
    }

    /// The style of `name`; of what is drawn nowhere that of all that has none of its own.
    pub(crate) fn style(&self, name: &str) -> LineStyle {
        const NONE: LineStyle = LineStyle { color: COLORS[0], dash: Dash::Solid, marker: Marker::Circle };
        self.0.get(name).copied().unwrap_or(NONE)
    }
}

/// How often each of `N` choices is taken: in each picture, and in all.
struct Taken<const N: usize> {
    pictures: Vec<[usize; N]>,
    all: [usize; N],
}

impl<const N: usize> Taken<N> {
    fn for_pictures(pictures: usize) -> Self {
        Self { pictures: vec![[0; N]; pictures], all: [0; N] }
    }

    /// Takes for what is drawn in `places` what is taken least there, then least in all, then the next from `wanted` on; `None`
    /// for what is drawn nowhere.
    fn take(&mut self, places: &BTreeSet<usize>, wanted: usize) -> Option<usize> {
        let often = |choice: &usize| {
            let there: usize = places.iter().map(|place| self.pictures[*place][*choice]).sum();
            (there, self.all[*choice])
        };
        let choice =
            (0..N).map(|step| (wanted + step) % N).min_by_key(often).filter(|_| !places.is_empty())?;
        places.iter().for_each(|place| self.pictures[*place][choice] += 1);
        self.all[choice] += 1;
        Some(choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(mechanism: &str, name: &str) -> Series {
        Series { mechanism: mechanism.to_owned(), name: name.to_owned() }
    }

    fn alone<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Series> {
        names.into_iter().map(|name| series(name, name)).collect()
    }

    #[test]
    fn a_mechanism_has_one_colour_and_its_variants_differ() {
        let rings = ["shm-ring:wait=spin", "shm-ring", "shm-ring:wait=futex"];
        let rings = rings.map(|name| series("shm-ring", name));
        let styles = LineStyles::for_pictures(&[], &[[&rings[..], &alone(["pipe"])].concat()]);
        let [ring, spin, pipe] = ["shm-ring", "shm-ring:wait=spin", "pipe"].map(|name| styles.style(name));
        assert_eq!(ring.color, spin.color);
        assert_ne!((ring.dash, ring.marker), (spin.dash, spin.marker));
        assert_ne!(ring.color, pipe.color);
    }

    #[test]
    fn mechanisms_have_colours_in_the_order_that_is_given() {
        let pictures = [alone(["tcp", "pipe"]), alone(["udp", "tcp"])];
        let first = ["null", "pipe", "udp"].map(str::to_owned);
        let styles = LineStyles::for_pictures(&first, &pictures);
        assert_eq!(
            ["pipe", "udp", "tcp"].map(|name| styles.style(name).color),
            [COLORS[0], COLORS[1], COLORS[2]]
        );
    }

    #[test]
    fn what_stands_together_differs_in_colour() {
        let many: Vec<String> = (0..13).map(|nth| format!("mechanism {nth}")).collect();
        let many = alone(many.iter().map(String::as_str));
        let figure = [&many[..1], &many[8..], &alone(["shared memory, POSIX semaphores"])].concat();
        let styles = LineStyles::for_pictures(&[], &[many, figure.clone()]);
        let colors: BTreeSet<&str> = figure.iter().map(|series| styles.style(&series.name).color).collect();
        assert_eq!(colors.len(), figure.len(), "{colors:?}");
    }

    #[test]
    fn lines_of_one_figure_differ_in_colour_and_without_it() {
        let names: Vec<String> = (0..35).map(|nth| format!("line {nth}")).collect();
        let before = alone(["pipe", "tcp", "udp"]);
        let styles = LineStyles::for_pictures(&[], &[before, alone(names.iter().map(String::as_str))]);
        let styles: Vec<LineStyle> = names.iter().map(|name| styles.style(name)).collect();
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
