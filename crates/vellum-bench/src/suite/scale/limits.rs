//! Limits of the system that many logs or processes come to. They are looked at before the run, so
//! that a case is left out with one sentence instead of failing in the middle.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::{Context, Error, Result};

/// Descriptors that a process keeps for each log, at most, and mappings.
const DESCRIPTORS_PER_LOG: u64 = 6;
const MAPPINGS_PER_LOG: u64 = 6;
/// Those of the program itself.
const OTHERS: u64 = 100;

/// Whether one process may have so many logs open.
pub(super) fn check_logs(logs: u32) -> Result<()> {
    let logs = u64::from(logs);
    let descriptors = logs * DESCRIPTORS_PER_LOG + OTHERS;
    // `raise` takes all that the system allows.
    let allowed = getrlimit(Resource::Nofile).maximum;
    enough(allowed, descriptors, &format!("{logs} logs"), "file descriptors", "ulimit -Hn")?;
    let mappings = logs * MAPPINGS_PER_LOG + OTHERS;
    let allowed = fs::read_to_string("/proc/sys/vm/max_map_count").ok();
    let allowed = allowed.and_then(|text| text.trim().parse().ok());
    enough(allowed, mappings, &format!("{logs} logs"), "mappings", "sysctl vm.max_map_count")
}

/// Whether this user may start so many processes.
pub(super) fn check_processes(processes: u32) -> Result<()> {
    let descriptors = u64::from(processes) + OTHERS;
    let allowed = getrlimit(Resource::Nofile).current;
    let what = format!("{processes} processes");
    enough(allowed, descriptors, &what, "file descriptors to wait for them", "ulimit -n")?;
    let allowed = getrlimit(Resource::Nproc).current;
    enough(allowed, u64::from(processes), &what, "processes of this user", "ulimit -u")
}

/// `None` is no limit.
fn enough(allowed: Option<u64>, needed: u64, who: &str, what: &str, raise: &str) -> Result<()> {
    match allowed {
        Some(allowed) if allowed < needed => Err(Error::unsupported(format!(
            "{who} need {needed} {what}, and {allowed} are allowed; `{raise}` sets that limit"
        ))),
        _ => Ok(()),
    }
}

/// Gives the calling process as many descriptors as the system lets it have.
pub(super) fn raise() -> Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        .context(|| "raise the limit of file descriptors")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn what_is_too_much_is_said_in_one_sentence_with_what_would_do() {
        let error = enough(Some(1024), 6100, "1000 logs", "descriptors", "ulimit -n").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let text = "1000 logs need 6100 descriptors, and 1024 are allowed; `ulimit -n` sets that \
                    limit";
        assert_eq!(error.to_string(), text);
        assert!(
            enough(Some(6100), 6100, "", "", "").is_ok() && enough(None, 1, "", "", "").is_ok()
        );
    }
}
