//! One disk, one run of the writer, one cut, one check.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use anyhow::{Context, bail, ensure};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use vellum_bench::doctor::lies::{
    Checked, Conclusion, Limits, Promises, Witness, check, whole, write,
};
use vellum_zoo::filesystem::Filesystem;
use vellum_zoo::{Animal, BlockDevice, Disk, unmount_patiently};

use crate::powercut::sandbox::{Boot, Sandbox};
use crate::random::Random;

const BLOCK_LEN: usize = 4096;
/// Bytes of a disk, at least; each filesystem has its own minimum.
const DISK_LEN: u64 = 64 << 20;
/// The power goes after so many promises at most.
const PROMISES_MAX: u64 = 1200;
/// And so many turns of the scheduler later, at most.
const TURNS_MAX: u64 = 2000;
/// No run asks for more blocks than this; the cut comes before.
const BLOCKS_MAX: u64 = 100_000;

/// The outcome of a trial.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Blocks that were promised.
    pub promised: u64,
    /// Those of them that must be there.
    pub looked_for: u64,
    /// Those that are nowhere on the medium.
    pub forgotten: u64,
    /// Those that the check said are lost.
    pub lost: u64,
    /// Those that are nowhere on the medium, and of which the check said nothing.
    pub missed: u64,
    /// Whether the filesystem could not be mounted after the cut.
    pub is_ruined: bool,
}

/// Cuts the power under the writer on a new disk.
pub fn run(
    animal: &Animal,
    filesystem: Filesystem,
    sandbox: &mut Sandbox,
    random: &mut Random,
) -> anyhow::Result<Outcome> {
    let dir = sandbox.dir("trial")?;
    let (image, mounted) = (dir.join("image"), dir.join("mounted"));
    std::fs::create_dir_all(&mounted)?;
    filesystem.make(&image, DISK_LEN, false)?;
    let medium = File::options().read(true).write(true).open(&image)?;
    let device = animal.device(&dir, medium.try_clone()?)?;
    sandbox.enter_boot(Boot::Another, 0)?;
    filesystem.mount(device.path(), &mounted)?;
    let text = cut_while_writing(&device, &mounted, random)?;
    let there = blocks_of(&medium)?;
    unmount_patiently(&mounted).context("cannot unmount after the cut")?;
    device.disk().power_on();
    device.forget_cached()?;
    sandbox.enter_boot(Boot::Another, 0)?;
    let outcome = match filesystem.mount(device.path(), &mounted) {
        // All of it is lost, and no check can miss that.
        Err(_) => Outcome { is_ruined: true, ..Outcome::default() },
        Ok(()) => {
            let promises = Promises::parse(&text, &mounted)?;
            let checked = check(&mounted, &promises, false);
            unmount_patiently(&mounted)?;
            judged(&checked?, &text, &there)?
        }
    };
    drop(device);
    std::fs::remove_dir_all(&dir)?;
    Ok(outcome)
}

/// Writes until the power goes; returns the acknowledgements that a witness has heard.
fn cut_while_writing(
    device: &BlockDevice<Disk>,
    mounted: &Path,
    random: &mut Random,
) -> anyhow::Result<String> {
    let (after, turns) = (1 + random.below(PROMISES_MAX), random.below(TURNS_MAX));
    let (sender, receiver) = channel();
    let mut memory = Memory { heard: String::new(), count: 0, after, cutter: sender };
    let (cut, result) = thread::scope(|scope| {
        let cutter = scope.spawn(move || -> io::Result<bool> {
            // Without a promise the writer has failed before.
            let Ok(()) = receiver.recv() else { return Ok(false) };
            (0..turns).for_each(|_| thread::yield_now());
            device.disk().cut().map(|_| true)
        });
        let limits = Limits { blocks: Some(BLOCKS_MAX), time: None };
        let result = write(mounted, &mut memory, limits);
        let Memory { cutter: sender, heard, .. } = memory;
        drop(sender);
        (cutter.join(), result.map(drop).map_err(|error| (error, heard)))
    });
    let was_cut = cut.map_err(|_| anyhow::anyhow!("the cutter is gone"))??;
    match result {
        Err((_, heard)) if was_cut => Ok(heard),
        Err((error, _)) => bail!("the writer failed before the cut: {error}"),
        Ok(()) => bail!("the writer noticed no cut"),
    }
}

/// A witness in memory that has the power cut.
struct Memory {
    heard: String,
    count: u64,
    after: u64,
    cutter: Sender<()>,
}

impl Witness for Memory {
    fn hear(&mut self, line: &str) -> vellum_bench::Result<()> {
        self.heard.push_str(line);
        self.heard.push('\n');
        self.count += 1;
        if self.count == self.after + 1 {
            let _ = self.cutter.send(());
        }
        Ok(())
    }
}

/// Run and number of each whole block on the medium.
fn blocks_of(medium: &File) -> anyhow::Result<HashSet<(u64, u64)>> {
    let mut blocks = HashSet::new();
    let (mut bytes, mut offset) = ([0; BLOCK_LEN], 0);
    loop {
        offset = match seek(medium, SeekFrom::Data(offset)) {
            Ok(data) => data - data % BLOCK_LEN as u64,
            Err(Errno::NXIO) => return Ok(blocks),
            Err(error) => return Err(error.into()),
        };
        medium.read_exact_at(&mut bytes, offset)?;
        blocks.extend(whole(&bytes));
        offset += BLOCK_LEN as u64;
    }
}

/// Compares the report of the check with the medium.
fn judged(checked: &Checked, heard: &str, there: &HashSet<(u64, u64)>) -> anyhow::Result<Outcome> {
    let run = heard.split("run=").nth(1).and_then(|rest| rest.get(..16));
    let run = u64::from_str_radix(run.context("the head has no run")?, 16)?;
    let expected = match checked.lost.is_empty() {
        true => Conclusion::Honest,
        false => Conclusion::Lied,
    };
    let is_known = checked.looked_for.is_empty() || checked.conclusion == expected;
    ensure!(is_known, "the cut was not noticed: {:?}", checked.conclusion);
    let lost: HashSet<u64> = checked.lost.iter().map(|lost| lost.number).collect();
    let forgotten: Vec<u64> = checked
        .looked_for
        .iter()
        .copied()
        .filter(|number| !there.contains(&(run, *number)))
        .collect();
    let missed = forgotten.iter().filter(|number| !lost.contains(number)).count();
    Ok(Outcome {
        promised: checked.promised,
        looked_for: checked.looked_for.len() as u64,
        forgotten: forgotten.len() as u64,
        lost: lost.len() as u64,
        missed: missed as u64,
        is_ruined: false,
    })
}
