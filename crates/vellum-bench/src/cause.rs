//! Causes of slow or unsafe writing, or of measurements that mislead: each cause has one name
//! everywhere, in [`advise`](crate::advise), in [`doctor`](crate::doctor), in JSON and in the
//! documentation.
use crate::names::{as_name, named};

named! {
    /// A cause of slow or unsafe writing, or of measurements that mislead.
    #[derive(PartialOrd, Ord, Hash)]
    #[non_exhaustive]
    pub enum Cause, "is not a cause" {
        /// A write or a flush failed.
        WriteErrors = "write-errors",
        /// Written bytes are not there when they are read.
        LostWrites = "lost-writes",
        /// There is no room.
        NoSpace = "no-space",
        /// The files are in memory, so a reboot takes them.
        Memory = "memory",
        /// An overlay is mounted without syncs.
        OverlayVolatile = "overlay-volatile",
        /// The filesystem does not empty the cache of the disk.
        NoBarriers = "no-barriers",
        /// The kernel does not know of the cache of the disk.
        HiddenCache = "hidden-cache",
        /// A flush returns before any device could have answered.
        TooFast = "too-fast",
        /// The control group has a limit for this device.
        CgroupLimit = "cgroup-limit",
        /// It was fast, and became slow for good.
        BudgetEnds = "budget-ends",
        /// So many operations a second, and no more.
        Throttle = "throttle",
        /// Others use the same device.
        Neighbour = "neighbour",
        /// At times all writes stall.
        Stalls = "stalls",
        /// No two writes take the same time.
        Jitter = "jitter",
        /// A direct write of 512 bytes takes longer than one of 4096.
        EmulatedSectors = "emulated-sectors",
        /// The partition does not begin where a sector does.
        Misaligned = "misaligned",
        /// The flush takes the time, and the write does not.
        SlowFlush = "slow-flush",
        /// The journal of the filesystem takes the time.
        SlowJournal = "slow-journal",
        /// A place takes longer when it is first written.
        FirstWrites = "first-writes",
        /// After a rest the disk takes its time.
        Sleeps = "sleeps",
        /// At the same pace it grows slower bit by bit.
        SlowsDown = "slows-down",
        /// The write itself takes the time.
        SlowDevice = "slow-device",
        /// All data is written twice.
        DataJournal = "data-journal",
        /// The mount waits for the disk at each change.
        SyncMount = "sync-mount",
        /// Data that is changed gets new blocks.
        CopyOnWrite = "copy-on-write",
        /// The filesystem compresses.
        Compression = "compression",
        /// Everything goes through encryption.
        Encryption = "encryption",
        /// The filesystem is nearly full.
        NearlyFull = "nearly-full",
        /// A filesystem of another machine.
        NetworkFilesystem = "network-filesystem",
        /// A filesystem that a program serves.
        Fuse = "fuse",
        /// A filesystem in layers.
        Overlay = "overlay",
        /// A file that is used as a disk, with a cache of its own.
        LoopDevice = "loop-device",
        /// A synchronous write is a write and a flush.
        NoFua = "no-fua",
        /// A power cut can leave data of others in files.
        DataWriteback = "data-writeback",
        /// Space can't be allocated ahead.
        NoExtents = "no-extents",
        /// There may be less room than there seems to be.
        Quota = "quota",
        /// This program is the limit, and not the disk.
        TesterBound = "tester-bound",
        /// The host gives the processor to others.
        Steal = "steal",
        /// Other programs use the processors.
        BusyMachine = "busy-machine",
        /// The second half says something else than the first.
        HalvesDiffer = "halves-differ",
    }
}

as_name!(Cause);
