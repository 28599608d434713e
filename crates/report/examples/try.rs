//! scratch
fn main() {
    let inputs: Vec<_> = std::env::args().skip(2).map(|p| model::results::parse(std::io::BufReader::new(std::fs::File::open(&p).unwrap()), &p).unwrap()).collect();
    let inputs: Vec<_> = inputs.iter().map(|r| report::Input { results: r, study: None }).collect();
    std::fs::write(std::env::args().nth(1).unwrap(), report::html(&inputs, &["ipcmark".into()])).unwrap();
}
