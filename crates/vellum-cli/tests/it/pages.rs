//! Every command line in the pages is one that the command understands.

use std::fs;
use std::path::{Path, PathBuf};

use super::support::run;

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let is_page = |path: &PathBuf| path.extension().is_some_and(|end| end == "md");
    docs.filter(is_page).chain([root.join("README.md")]).collect()
}

/// Fenced blocks for shells begin so.
const SHELL_FENCES: [&str; 4] = ["```", "```sh", "```bash", "```console"];

/// The lines of a page for shells: of fenced blocks, and those that are indented. One that ends in
/// a backslash continues in the next.
fn code(text: &str) -> Vec<String> {
    let (mut lines, mut fence, mut continues) = (Vec::new(), None, false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fence = if fence.is_some() { None } else { Some(line.trim()) };
        } else if fence.map_or(line.starts_with("    "), |fence| SHELL_FENCES.contains(&fence)) {
            let part = line.trim();
            match lines.last_mut() {
                Some(last) if continues => *last = format!("{last} {part}"),
                _ => lines.push(part.to_string()),
            }
            continues = part.ends_with('\\');
            if let Some(last) = lines.last_mut().filter(|_| continues) {
                last.pop();
            }
        }
    }
    lines
}

/// The arguments of each `vellum` in a line of a shell: quotes are taken off, comments and
/// redirections left out.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let mut word = String::new();
    let (mut quote, mut is_redirected) = (None, false);
    for c in line.chars().chain([' ']) {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '#') if word.is_empty() => break,
            (None, ' ' | '|' | ';' | '&') => {
                let (ends, word) = (!word.is_empty(), std::mem::take(&mut word));
                if ends && !is_redirected && !word.contains(['<', '>']) {
                    all.last_mut().unwrap().push(word.clone());
                }
                // `> FILE`, as opposed to `>FILE`.
                is_redirected = if ends { word.ends_with(['<', '>']) } else { is_redirected };
                if c != ' ' {
                    all.push(Vec::new());
                }
            }
            _ => word.push(c),
        }
    }
    all.retain(|words| words.first().is_some_and(|word| word == "vellum"));
    all
}

#[test]
fn what_the_pages_say_is_understood() {
    let (mut count, mut faults) = (0, Vec::new());
    for page in pages() {
        for line in code(&fs::read_to_string(&page).unwrap()) {
            for command in commands(&line) {
                // Options are looked at one by one, up to the one that asks for help.
                let arguments: Vec<&str> =
                    command[1..].iter().map(String::as_str).chain(["--help"]).collect();
                let answer = run(&arguments, b"");
                count += 1;
                if answer.code != 0 {
                    faults.push(format!("{}: {line}\n{}", page.display(), answer.stderr));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 30, "only {count} command lines were found");
}
