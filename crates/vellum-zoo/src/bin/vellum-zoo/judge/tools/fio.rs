//! `fio` as etcd's users run it: writes of 2300 bytes, each with an `fdatasync`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::tool::{Said, found, last_line, run_for};

/// etcd's FAQ: p99 of the sync below this.
const GOOD_MS: f64 = 10.0;

pub(super) fn ask(dir: &Path, seconds: u32) -> Said {
    let Some(program) = found("fio", &[]) else { return Said::nothing() };
    match run_for(seconds.into(), &program, words(dir, seconds)) {
        Ok(output) => {
            read(&output.stdout).unwrap_or_else(|| Said::failed(last_line(&output.stderr)))
        }
        Err(error) => Said::failed(format!("{error:#}")),
    }
}

/// The recipe, which takes minutes on a slow disk and so has an end.
fn words(dir: &Path, seconds: u32) -> Vec<String> {
    let words = ["--rw=write", "--ioengine=sync", "--fdatasync=1", "--size=22m", "--bs=2300"];
    let mut words = words.map(str::to_owned).to_vec();
    words.extend(["--name=etcd", "--output-format=json"].map(str::to_owned));
    words.push(format!("--runtime={seconds}"));
    words.push(format!("--directory={}", escaped(dir)));
    words
}

/// A directory for an option in which a colon ends a name.
fn escaped(dir: &Path) -> String {
    PathBuf::from(dir).display().to_string().replace(':', "\\:")
}

fn read(output: &[u8]) -> Option<Said> {
    // Notes can stand before it.
    let start = output.iter().position(|byte| *byte == b'{')?;
    let value: Value = serde_json::from_slice(&output[start..]).ok()?;
    let job = &value["jobs"][0];
    if job["error"].as_i64()? != 0 {
        return None;
    }
    let p99_ms = job["sync"]["lat_ns"]["percentile"]["99.000000"].as_f64()? / 1e6;
    let is_good = p99_ms < GOOD_MS;
    let word = if is_good { "good" } else { "bad" };
    Some(Said::new(format!("p99 {p99_ms:.2} ms, {word}"), Some(p99_ms), Some(is_good)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p99_of_the_sync_is_read_and_an_error_is_none() {
        let text = |error: u32, nanos: u64| {
            format!(
                "note: both iodepth >= 1\n{{\"jobs\":[{{\"error\":{error},\"sync\":{{\"lat_ns\":\
                 {{\"percentile\":{{\"99.000000\":{nanos}}}}}}}}}]}}"
            )
        };
        let said = read(text(0, 12_500_000).as_bytes()).unwrap();
        assert_eq!((said.text.as_str(), said.is_good), ("p99 12.50 ms, bad", Some(false)));
        assert_eq!(read(text(0, 900_000).as_bytes()).unwrap().is_good, Some(true));
        assert_eq!(read(text(5, 900_000).as_bytes()), None);
        assert_eq!(read(b"fio: no space"), None);
    }
}
