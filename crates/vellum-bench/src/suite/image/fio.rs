//! The same load with fio, for a user that wants the word of another program.
//!
//! fio writes into an image that we made, with the options of the published thread. It knows no
//! clusters, so it can be asked only for the states in which a first write is like any other. Its
//! blocks are not read back: only fio knows their content.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Deserialize;

use super::content::BLOCK_BYTES;
use super::engine::ImageEngine;
use super::figures::{Figures, PERCENTILES, step_count};
use super::load::Load;
use crate::error::{Context, Error, Result};
use crate::process::fork_child;

const PROGRAM: &str = "fio";
/// The exit code of a child that could not become fio; shells use it too.
const NOT_STARTED: i32 = 127;

/// Is fio there?
///
/// # Errors
///
/// It is not; a line that says so.
pub(super) fn check() -> Result<()> {
    let found = Command::new(PROGRAM).arg("--version").stdin(Stdio::null()).output();
    match found {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(Error::invalid("fio is missing; it comes with the package fio")),
    }
}

/// Has fio write to the image in `dir` and returns its figures.
pub(super) fn run(engine: ImageEngine, load: &Load, dir: &Path) -> Result<Figures> {
    let said = dir.join("fio.err");
    let errors = File::create(&said).context(|| "make a file for what fio says")?;
    let mut command = Command::new(PROGRAM);
    command.args(arguments(engine, load)).current_dir(dir);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
    // Not spawned but become: so the kernel kills it when its parent dies, as any child of ours.
    let mut child = fork_child(|| {
        let _error = command.exec();
        NOT_STARTED
    })
    .context(|| "start fio")?;
    let status = child.reap()?;
    if status.exit_status() != Some(0) {
        let said = fs::read_to_string(&said).unwrap_or_default().trim().replace('\n', "; ");
        return Err(Error::failed(format!("fio failed ({:?}): {said}", status.exit_status())));
    }
    let read =
        |path: PathBuf| fs::read_to_string(&path).context(|| format!("read {}", path.display()));
    figures(&read(dir.join("fio.json"))?, &read(dir.join("fio_iops.1.log"))?, load.duration)
}

fn arguments(engine: ImageEngine, load: &Load) -> Vec<String> {
    let engine = match engine {
        ImageEngine::Aio => "libaio",
        ImageEngine::Uring => "io_uring",
        ImageEngine::Threads => "posixaio",
    };
    let percentiles = PERCENTILES.map(|percentile| percentile.to_string()).join(":");
    let step_ms = load.duration.as_millis() as usize / step_count(load.duration);
    let bytes = u64::from(load.blocks) * BLOCK_BYTES as u64;
    [
        // A thread, so that nothing of it outlives its process.
        "--thread --name=image --filename=image --direct=1 --randrepeat=1 --numjobs=1",
        "--fallocate=none --rw=randwrite --time_based=1 --output-format=json --output=fio.json",
        "--clat_percentiles=0 --lat_percentiles=1 --write_iops_log=fio",
        &format!("--percentile_list={percentiles} --log_avg_msec={}", step_ms.max(1)),
        &format!("--ioengine={engine} --iodepth={} --bs={BLOCK_BYTES}", load.depth),
        &format!("--size={bytes} --runtime={}ms", load.duration.as_millis()),
    ]
    .join(" ")
    .split(' ')
    .map(str::to_string)
    .collect()
}

#[derive(Deserialize)]
struct Output {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    error: i32,
    write: Writes,
}

#[derive(Deserialize)]
struct Writes {
    iops: f64,
    lat_ns: Latencies,
}

#[derive(Deserialize)]
struct Latencies {
    #[serde(default)]
    percentile: std::collections::BTreeMap<String, f64>,
}

/// From fio's JSON and its log of rates.
fn figures(json: &str, log: &str, duration: Duration) -> Result<Figures> {
    let output: Output = serde_json::from_str(json)
        .map_err(|error| Error::failed(format!("understand what fio says: {error}")))?;
    let job = output.jobs.first().ok_or_else(|| Error::failed("fio tells of no job"))?;
    if job.error != 0 {
        return Err(Error::os("fio", io::Error::from_raw_os_error(job.error)));
    }
    let nanos = |percentile: f64| {
        let nanos = job.write.lat_ns.percentile.get(&format!("{percentile:.6}"));
        nanos.ok_or_else(|| Error::failed(format!("fio does not tell percentile {percentile}")))
    };
    let mut latency_us = [0.0; PERCENTILES.len()];
    for (micros, percentile) in latency_us.iter_mut().zip(PERCENTILES) {
        *micros = nanos(percentile)? / 1000.0;
    }
    let rates = rates(log, duration)?;
    Ok(Figures { making_ms: 0.0, extents: None, rate: job.write.iops, latency_us, rates })
}

/// From lines `end of the step in ms, writes per second, …`: fio's steps may be longer than asked
/// for. Of a run that is very short it tells none, and then there are no numbers.
fn rates(log: &str, duration: Duration) -> Result<Vec<f64>> {
    let line = |line: &str| -> Option<(f64, f64)> {
        let mut fields = line.split(',').map(|field| field.trim().parse().ok());
        fields.next()?.zip(fields.next()?)
    };
    let lines: Option<Vec<(f64, f64)>> = log.lines().map(line).collect();
    let lines = lines.ok_or_else(|| Error::failed("fio's log of rates is not as expected"))?;
    let steps = step_count(duration);
    let step_ms = duration.as_secs_f64() * 1e3 / steps as f64;
    let rate_at = |step: usize| {
        let middle = (step as f64 + 0.5) * step_ms;
        let line = lines.iter().find(|(end, _)| *end >= middle).or(lines.last());
        line.map_or(f64::NAN, |(_, rate)| *rate)
    };
    Ok((0..steps).map(rate_at).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{
        "fio version": "fio-3.33",
        "jobs": [{
            "jobname": "image", "error": 0,
            "write": {"io_bytes": 163840, "iops": 41231.5, "lat_ns": {
                "min": 1000, "max": 90000, "percentile": {
                    "1.000000": 1000, "10.000000": 2000, "25.000000": 3000, "50.000000": 4000,
                    "75.000000": 5000, "90.000000": 6000, "95.000000": 7000, "99.000000": 8000,
                    "99.500000": 9000, "99.900000": 10000, "99.990000": 11000,
                    "100.000000": 12000
            }}}
        }]
    }"#;

    #[test]
    fn what_fio_says_is_understood() {
        let log = "500, 40000, 1, 0, 0\n1000, 42000, 1, 0, 0\n";
        let found = figures(JSON, log, Duration::from_secs(1)).unwrap();
        assert_eq!(
            (found.rate, found.latency_at(50.0), found.latency_at(99.9)),
            (41231.5, 4.0, 10.0)
        );
        assert_eq!((found.rates.len(), found.ends()), (40, (40_000.0, 42_000.0)));
    }

    #[test]
    fn what_fio_does_not_say_is_not_made_up() {
        let second = Duration::from_secs(1);
        let failed = JSON.replace("\"error\": 0", "\"error\": 28");
        let error = figures(&failed, "500, 1", second).unwrap_err().to_string();
        assert!(error.contains("No space left"), "{error}");
        let other = JSON.replace("\"99.900000\"", "\"99.800000\"");
        assert!(figures(&other, "500, 1", second).unwrap_err().to_string().contains("99.9"));
        assert!(figures(JSON, "500 ms", second).is_err());
        let short = figures(JSON, "", second).unwrap();
        assert!(short.rate > 0.0 && short.rates.iter().all(|rate| rate.is_nan()));
        assert!(figures("{}", "500, 1", second).is_err());
    }
}
