//! Lists of campaigns against `vellum-stress`: a short one for each change, and a long one.

use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;

/// Text logs that continue in new files often, and compress with zstd unless `=gzip` follows.
const TEXT: &str = "--layout text --segment-bytes 16384 --rotate-bytes 4096 --compress";

/// Framed logs of several processes, whose oldest segments go and are used again.
const CROWD: &str = "--segment-bytes 65536 --trim-every 40 --threads 3 --processes 2 --bytes 20-9000 \
                     --batch 3 --checkpoint-every 25 --prepare-every 15";

/// Framed logs of two processes.
const PAIR: &str = "--segment-bytes 65536 --threads 2 --processes 2";

/// Writers that sync behind one that is between reserving and publishing.
const HELD: &str = "--segment-bytes 65536 --threads 3 --processes 2 --sync";

/// Groups so long that the segments behind the first get blocks and no zeros.
const LONG_RECORDS: &str = "--segment-bytes 2097152 --processes 2 --bytes 500000-1500000";

/// The time of a campaign of the long list, unless an option has one.
const LONG: Duration = Duration::from_secs(300);

/// A list of campaigns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Profile {
    /// A few hundred cuts on each filesystem, in the settings that differ most
    Sample,
    /// Further recordings for five minutes in each setting, or for --seconds
    Long,
}

/// A campaign: the options of `vellum-stress`, and how the power is cut under it.
#[derive(Clone, Debug)]
pub(super) struct Campaign {
    work: String,
    cuts: &'static str,
}

impl Profile {
    /// The campaigns, in this order.
    pub(super) fn campaigns(self) -> Vec<Campaign> {
        match self {
            Profile::Sample => sample(),
            Profile::Long => long(),
        }
    }

    /// For how long each campaign makes further recordings.
    pub(super) fn seconds(self, asked: Option<u64>) -> Option<u64> {
        asked.or((self == Profile::Long).then_some(LONG.as_secs()))
    }
}

fn campaign(work: impl Into<String>, cuts: &'static str) -> Campaign {
    Campaign { work: work.into(), cuts }
}

fn sample() -> Vec<Campaign> {
    let failing = "--records 200 --segment-bytes 65536 --threads 3 --bytes 20-3000";
    vec![
        campaign(
            "--records 150 --segment-bytes 16384 --trim-every 20 --cursor",
            "--points 30 --at-least 15 --prefix --nested",
        ),
        campaign(
            "--records 400 --segment-bytes 32768 --trim-every 40 --threads 3 --processes 2 \
             --bytes 20-9000",
            "--points 75 --at-least 37",
        ),
        campaign(format!("{failing} --fill pwrite"), "--points 30 --at-least 15"),
        campaign(
            format!("--records 150 {TEXT} --bytes 20-900 --commit 3 --retain-files 5"),
            "--points 10 --at-least 5 --prefix --nested",
        ),
        campaign(
            format!(
                "--records 300 {TEXT}=gzip --threads 2 --processes 2 --commit 5 --retain-files 8 \
                 --fill pwrite"
            ),
            "--points 15 --at-least 7",
        ),
        campaign(format!("--records 16 {LONG_RECORDS}"), "--points 8 --at-least 4 --fs ext4,xfs"),
        campaign(format!("--records 200 {PAIR} --follow"), "--points 15 --at-least 7"),
        campaign(format!("--records 120 {HELD}"), "--points 20 --at-least 10"),
        campaign(format!("--records 200 {PAIR} --batch 3 --envelope"), "--points 15 --at-least 7"),
        campaign(
            format!("--records 200 {TEXT} --bytes 20-900 --commit 3 --follow"),
            "--points 15 --at-least 7",
        ),
        campaign(failing, "--points 20 --at-least 10 --fs ext4,xfs --fail write:90"),
        campaign(failing, "--points 20 --at-least 10 --fs ext4,xfs --fail flush:70"),
        campaign(failing, "--points 20 --at-least 10 --fs ext4,xfs --fail lose:70"),
    ]
}

fn long() -> Vec<Campaign> {
    let paths = "--commit-path fdatasync/4096/2,dsync/4096/1";
    vec![
        campaign("--records 2000", "--prefix --nested"),
        campaign(format!("--records 2000 {CROWD}"), "--nested"),
        campaign(format!("--records 2000 {CROWD} {paths}"), "--physical-sectors"),
        // Records that are written to the stage by system call, and stages that are used again.
        campaign(
            "--records 60 --segment-bytes 524288 --trim-every 20 --threads 3 --processes 2 \
             --bytes 20-400000",
            "--nested",
        ),
        campaign(format!("--records 100 {LONG_RECORDS} --threads 2 --trim-every 20"), "--nested"),
        campaign(format!("--records 2000 {CROWD} --fill mapped --cursor"), "--nested"),
        campaign(format!("--records 2000 --commit 5 --retain-files 9 {TEXT}"), "--prefix --nested"),
        campaign(format!("--records 2000 --follow {CROWD}"), "--nested"),
        campaign(format!("--records 600 {HELD}"), "--nested"),
        campaign(format!("--records 600 {HELD} --fill mapped"), "--nested"),
        campaign(format!("--records 600 {TEXT} --bytes 20-900 --threads 3 --sync"), "--nested"),
    ]
}

impl Campaign {
    /// Its command line, without the name of the program. `vellum-stress` is beside this program.
    pub(super) fn words(&self, seconds: Option<u64>) -> Result<Vec<String>> {
        let own = std::env::current_exe().context("cannot find this program")?;
        let stress = own.with_file_name("vellum-stress");
        let stress = stress.to_str().context("the path of this program is no text")?;
        let quoted = format!("'{}'", stress.replace('\'', r"'\''"));
        let mut words = vec![
            "--check".into(),
            format!("{quoted} --check --torn {{dir}}/log"),
            "--work".into(),
            format!("{quoted} {{dir}}/log {}", self.work),
        ];
        words.extend(self.cuts.split(' ').map(String::from));
        if let Some(seconds) = seconds {
            words.extend(["--seconds".into(), seconds.to_string()]);
        }
        Ok(words)
    }
}
