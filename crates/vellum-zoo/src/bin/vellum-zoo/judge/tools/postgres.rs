//! `pg_test_fsync`: the mean of each way to sync. It says no more, so that the word is ours: a mean
//! below the limit that etcd has for p99.

use std::path::{Path, PathBuf};

use super::tool::{Said, found, last_line, run_for};

const GOOD_MS: f64 = 10.0;
/// For each of about twenty tests.
const SECONDS: u64 = 1;
const TESTS: u64 = 30;
/// Where Debian has the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";

pub(super) fn ask(dir: &Path) -> Said {
    let versions = std::fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let dirs: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    let Some(program) = found("pg_test_fsync", &dirs) else {
        return Said::nothing();
    };
    let file = dir.join("pg_test_fsync.out");
    let words = ["-s".into(), SECONDS.to_string().into(), "-f".into(), file.into_os_string()];
    match run_for(SECONDS * TESTS, &program, words) {
        Ok(output) => {
            let said = read(&String::from_utf8_lossy(&output.stdout));
            said.unwrap_or_else(|| Said::failed(last_line(&output.stderr)))
        }
        Err(error) => Said::failed(format!("{error:#}")),
    }
}

/// The first line of `fdatasync` is that of one write.
fn read(text: &str) -> Option<Said> {
    let line = text.lines().find(|line| line.trim_start().starts_with("fdatasync"))?;
    let mut words = line.split_whitespace().rev();
    let mean_us: f64 = words.by_ref().find_map(|word| word.parse().ok())?;
    let mean_ms = mean_us / 1e3;
    Some(Said::new(format!("mean {mean_ms:.2} ms"), None, Some(mean_ms < GOOD_MS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_fdatasync_with_one_write_is_read() {
        let text = "5 seconds per test\n\nCompare file sync methods using one 8kB write:\n\
                    (in wal_sync_method preference order)\n\
                    \x20       open_datasync                      2401.283 ops/sec     416 usecs/op\n\
                    \x20       fdatasync                            81.100 ops/sec   12330 usecs/op\n\
                    \nCompare file sync methods using two 8kB writes:\n\
                    \x20       fdatasync                          2000.000 ops/sec     500 usecs/op\n";
        let said = read(text).unwrap();
        assert_eq!((said.text.as_str(), said.is_good), ("mean 12.33 ms", Some(false)));
        assert_eq!(read("could not open output file"), None);
    }
}
