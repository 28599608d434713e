//! `cargo xtask bench speed`: which short work, timed beside a slice, tells best how fast the CPU was during the slice.
//!
//! What the tables show decides what `sys::speed` runs. Nothing else reads them.

mod candidates;
mod slices;

use super::setup::Bench;
use analysis::stats::{deviation, mean, median, squares};
use candidates::{CANDIDATES, SpeedCandidate};
use model::{Placement, Workload};
pub use slices::{ECHO, echo};
use slices::{MECHANISMS, Slice, measure};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

const TIME: Duration = Duration::from_secs(60);
const WINDOW_S: f64 = 10.0;
/// A window with fewer slices has no median that says anything.
const LEAST_IN_WINDOW: usize = 10;
/// A CPU is undisturbed whose reading is at most this many times that of full speed.
const UNDISTURBED: f64 = 1.05;
/// The rest, the slowest, is left out: of most of these slices and readings somebody else had the CPU for a while.
const KEPT: f64 = 0.98;

/// Measures for [`TIME`] and prints what each candidate explains of each mechanism.
pub fn run(bench: &Bench) -> Result<(), String> {
    let case = bench.case("pipe", Workload::Latency, 1, Placement::SameCore)?;
    let cpu = case.cpus.ok_or("the placement names no CPU")?.client;
    let all = measure(bench.clock(), cpu, TIME).map_err(|error| error.to_string())?;
    let file = crate::steps::root().join("target/bench-speed.tsv");
    keep(&all, &file).map_err(|error| format!("{}: {error}", file.display()))?;
    let cells: Vec<(usize, Vec<Cell>)> = (0..CANDIDATES.len())
        .map(|candidate| (candidate, (0..MECHANISMS.len()).map(|m| Cell::of(&all, candidate, m)).collect()))
        .collect();
    let left_out: usize = cells.iter().flat_map(|(_, row)| row).map(|cell| cell.left_out).sum();
    println!("{} slices of 1 ms on CPU {cpu}, each beside two readings of one candidate", all.len());
    println!(
        "{left_out} are left out: they or their readings are among the slowest {:.0}%",
        100.0 * (1.0 - KEPT)
    );
    for (index, mechanism) in MECHANISMS.iter().enumerate() {
        let times = all.iter().filter(|slice| slice.mechanism == index).map(|slice| slice.iteration_ns);
        let [fast, median, slow, _] = quantiles(times);
        println!("{mechanism:<12} median {median:.0} ns, 1% below {fast:.0}, 5% above {slow:.0}");
    }
    println!(
        "\nvariance explained (R2 of the logarithms), and the reading's median, 1% and 95% quantiles, in ns"
    );
    print_rows(
        &cells,
        |cell| format!("{:.2}", cell.fit.explained),
        |row| {
            let [fastest, median, slow, _] = row[0].reading_ns;
            format!(
                "mean {:.2}  {median:>6.0} {fastest:>6.0} {slow:>6.0}",
                mean_of(row, |cell| cell.fit.explained)
            )
        },
    );
    println!(
        "\nstandard deviation in % of the medians of windows of {WINDOW_S} s: as found, undisturbed, adjusted; \
         the share of undisturbed slices"
    );
    print_rows(
        &cells,
        |cell| {
            let [found, undisturbed, adjusted] = cell.wander.map(percent);
            format!("{found} {undisturbed} {adjusted}")
        },
        |row| format!("share {:.0}%", 100.0 * mean_of(row, |cell| cell.undisturbed)),
    );
    println!("\nevery slice: {}", file.display());
    Ok(())
}

fn print_rows(rows: &[(usize, Vec<Cell>)], cell: impl Fn(&Cell) -> String, end: impl Fn(&[Cell]) -> String) {
    println!("{:<10} {}", "", MECHANISMS.map(|name| format!("{name:>16}")).concat());
    for (candidate, row) in rows {
        let SpeedCandidate { name, .. } = CANDIDATES[*candidate];
        let cells: String = row.iter().map(|one| format!("{:>16}", cell(one))).collect();
        println!("{name:<10} {cells}  {}", end(row));
    }
}

fn mean_of(row: &[Cell], value: impl Fn(&Cell) -> f64) -> f64 {
    mean(&row.iter().map(value).collect::<Vec<f64>>())
}

fn percent(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{:.1}", 100.0 * value))
}

/// The quantiles 1%, 50%, 95% and [`KEPT`].
fn quantiles(values: impl Iterator<Item = f64>) -> [f64; 4] {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    [0.01, 0.5, 0.95, KEPT].map(|q| sorted[(q * (sorted.len() - 1) as f64) as usize])
}

/// What one candidate tells about one mechanism.
struct Cell {
    fit: Fit,
    left_out: usize,
    /// The share of slices with both readings undisturbed.
    undisturbed: f64,
    /// The standard deviation of the logarithm of the median between windows: of all slices, of the undisturbed, of all adjusted
    /// to full speed. Absent where fewer than two windows have enough slices.
    wander: [Option<f64>; 3],
    /// Of all readings of the candidate, not only those beside this mechanism.
    reading_ns: [f64; 4],
}

impl Cell {
    fn of(all: &[Slice], candidate: usize, mechanism: usize) -> Self {
        let of_candidate = || all.iter().filter(|slice| slice.candidate == candidate);
        let reading_ns = quantiles(of_candidate().flat_map(|slice| [slice.before_ns, slice.after_ns]));
        let [full_speed_ns, .., slowest_ns] = reading_ns;
        let of_both: Vec<&Slice> = of_candidate().filter(|slice| slice.mechanism == mechanism).collect();
        let [.., slowest_iteration_ns] = quantiles(of_both.iter().map(|slice| slice.iteration_ns));
        let worst_reading = |slice: &Slice| slice.before_ns.max(slice.after_ns);
        let slices: Vec<&Slice> = of_both
            .iter()
            .filter(|slice| slice.iteration_ns <= slowest_iteration_ns)
            .filter(|slice| worst_reading(slice) <= slowest_ns)
            .copied()
            .collect();
        let found: Vec<(f64, f64)> = slices.iter().map(|s| (s.at_s, s.iteration_ns.ln())).collect();
        let slowness: Vec<f64> = slices.iter().map(|s| (s.reading_ns() / full_speed_ns).ln()).collect();
        let fit = Fit::of(&slowness, &found.iter().map(|(_, log)| *log).collect::<Vec<f64>>());
        let adjusted: Vec<(f64, f64)> =
            found.iter().zip(&slowness).map(|((at_s, log), slow)| (*at_s, log - fit.slope * slow)).collect();
        let undisturbed: Vec<(f64, f64)> = slices
            .iter()
            .zip(&found)
            .filter(|(slice, _)| worst_reading(slice) <= UNDISTURBED * full_speed_ns)
            .map(|(_, found)| *found)
            .collect();
        Self {
            left_out: of_both.len() - slices.len(),
            undisturbed: undisturbed.len() as f64 / slices.len() as f64,
            wander: [&found, &undisturbed, &adjusted].map(|values| wander(values)),
            fit,
            reading_ns,
        }
    }
}

/// A straight line through points, by least squares.
struct Fit {
    slope: f64,
    /// The share of the variance that it explains.
    explained: f64,
}

impl Fit {
    fn of(x: &[f64], y: &[f64]) -> Self {
        let (mean_x, mean_y) = (mean(x), mean(y));
        let products: f64 = x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
        let slope = products / squares(x);
        Self { slope, explained: slope * products / squares(y) }
    }
}

/// The standard deviation between windows of the medians of `values`, which are times in seconds and logarithms.
fn wander(values: &[(f64, f64)]) -> Option<f64> {
    let window = |(at_s, _): &(f64, f64)| (at_s / WINDOW_S) as usize;
    let medians: Vec<f64> = values
        .chunk_by(|a, b| window(a) == window(b))
        .filter(|chunk| chunk.len() >= LEAST_IN_WINDOW)
        .filter_map(|chunk| median(&chunk.iter().map(|(_, log)| *log).collect::<Vec<f64>>()))
        .collect();
    (medians.len() > 1).then(|| deviation(&medians))
}

/// Writes every slice to `path`, for whoever wants to look at them again.
fn keep(slices: &[Slice], path: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(path.parent().unwrap_or(path))?;
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    writeln!(file, "at_s\tcandidate\tmechanism\titeration_ns\tbefore_ns\tafter_ns")?;
    for slice in slices {
        let (candidate, mechanism) = (CANDIDATES[slice.candidate].name, MECHANISMS[slice.mechanism]);
        let Slice { at_s, iteration_ns, before_ns, after_ns, .. } = slice;
        writeln!(
            file,
            "{at_s:.6}\t{candidate}\t{mechanism}\t{iteration_ns:.2}\t{before_ns:.1}\t{after_ns:.1}"
        )?;
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slices of one mechanism whose time is `1000 * (reading / 5000)^0.5` and one that was interrupted.
    fn slices() -> Vec<Slice> {
        let reading = |n: usize| 5000.0 * (1.0 + (n % 10) as f64 / 20.0);
        let slice = |n: usize| Slice {
            candidate: 0,
            mechanism: 0,
            at_s: n as f64 / 10.0,
            iteration_ns: 1000.0 * (reading(n) / 5000.0).sqrt(),
            before_ns: reading(n),
            after_ns: reading(n),
        };
        let mut slices: Vec<Slice> = (0..400).map(slice).collect();
        slices[7].iteration_ns = 9000.0;
        slices
    }

    #[test]
    fn a_reading_that_decides_the_time_explains_it_wholly() {
        let cell = Cell::of(&slices(), 0, 0);
        // The slowest readings are many that are equal, so that only the slowest slices are left out.
        assert_eq!(cell.left_out, 1);
        assert!((cell.fit.explained - 1.0).abs() < 1e-9 && (cell.fit.slope - 0.5).abs() < 1e-9);
        assert!((cell.undisturbed - 80.0 / 399.0).abs() < 1e-9, "{}", cell.undisturbed);
        assert!(cell.wander[2].unwrap() < 1e-9, "{:?}", cell.wander);
    }

    #[test]
    fn a_reading_that_has_nothing_to_do_with_the_time_explains_nothing() {
        let mut slices = slices();
        for (n, slice) in slices.iter_mut().enumerate() {
            slice.iteration_ns = if n / 10 % 2 == 0 { 1000.0 } else { 1100.0 };
        }
        assert!(Cell::of(&slices, 0, 0).fit.explained < 1e-9);
    }

    #[test]
    fn windows_with_few_slices_have_no_median() {
        assert_eq!(wander(&[(0.0, 1.0), (11.0, 2.0)]), None);
        let two: Vec<(f64, f64)> = (0..20).map(|n| (f64::from(n), f64::from(n / 10))).collect();
        assert!((wander(&two).unwrap() - 0.5_f64.sqrt()).abs() < 1e-12);
    }
}
