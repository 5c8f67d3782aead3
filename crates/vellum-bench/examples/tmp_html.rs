//! temporary
fn main() {
    let mut args = std::env::args().skip(1);
    let out = args.next().unwrap();
    let docs: Vec<_> = args
        .flat_map(|p| {
            vellum_bench::Document::from_json(&std::fs::read_to_string(p).unwrap()).unwrap()
        })
        .collect();
    std::fs::write(out, vellum_bench::html(&docs)).unwrap();
}
