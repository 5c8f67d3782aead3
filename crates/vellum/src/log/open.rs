//! Opening, creating and joining a log.
//!
//! All of it happens under an exclusive lock on the gate byte of the `lock` file, which the kernel
//! releases when its holder dies; so two creators make one log, and a creator killed half-way is
//! followed by another who starts over. The control file gets its name when it is complete.
//!
//! Readers without write permission cannot open the `lock` file, so they cannot hold the gate, nor
//! a participant's byte, against anybody. They read the control file and the segments alone.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;

use crate::error::OsResult;
use crate::format::control::{self, Geometry, HeaderFault};
use crate::format::frame::Codec;
use crate::format::segment::parse_file_name;
use crate::log::attachment::Attachment;
use crate::log::batch::CoreRef;
use crate::log::core::Core;
use crate::log::gate::Gate;
use crate::log::rebuild::{self, Positions};
use crate::log::{CONTROL_NAME, GEOMETRY_NAME, LOCK_NAME, pad};
use crate::options::{
    MAPPED_BYTES_MAX_DEFAULT, PREFAULT_BYTES_DEFAULT, SEGMENT_CAPACITY_BYTES_DEFAULT,
};
use crate::segment::{SPARE_SUFFIX, UNFINISHED_NAME, list, names};
use crate::shared::cursor::Packed;
use crate::shared::primitive::Ordering;
use crate::shared::region::{CONTROL_LEN, Region};
use crate::sys::filesystem::Filesystem;
use crate::sys::fork::PerProcess;
use crate::sys::{self, Map};
use crate::{Error, ErrorKind, Fill, Options, Preallocate, Result};

const UNFINISHED_CONTROL_NAME: &str = "control.new";

/// Opens the log in `dir` as `options` say.
pub(crate) fn open(dir: &Path, options: &Options) -> Result<CoreRef> {
    options.check()?;
    if options.read_only { open_read_only(dir, options) } else { open_for_writing(dir, options) }
}

fn open_for_writing(dir: &Path, options: &Options) -> Result<CoreRef> {
    let mode = options.mode.unwrap_or(0o666);
    let may_create = !options.never_create || options.create_new;
    if may_create {
        make_directory(dir, mode)?;
    }
    let filesystem = directory_filesystem(dir)?;
    if let Some(reason) = filesystem.refusal() {
        return Err(Error::new(ErrorKind::Unsupported, reason).at_path(dir));
    }
    check_is_ours(dir, may_create)?;
    let lock_file = open_lock_file(dir, mode)?;
    let gate = Gate::enter(dir)?;
    let control_path = dir.join(CONTROL_NAME);
    let control = match sys::file::open(&control_path, OFlags::RDWR, 0) {
        Ok(_) if options.create_new => {
            let message = "there is a log already";
            return Err(Error::new(ErrorKind::AlreadyExists, message).at_path(dir));
        }
        Ok(control) => control,
        Err(Errno::NOENT) => make_control(dir, options, filesystem, &gate, mode)?,
        Err(errno) => return Err(Error::os(errno, "open the control file", &control_path)),
    };
    let geometry = read_geometry(&control, &control_path)?;
    options.check_against(&geometry, dir)?;
    let (control, geometry) = if geometry.boot_id == sys::process::boot_id() {
        (control, geometry)
    } else {
        // Another boot: the words mean nothing, and nobody of that boot is alive.
        require_alone(&gate, dir)?;
        let geometry = Geometry { boot_id: sys::process::boot_id(), ..geometry };
        let positions = rebuild::scan(dir, &geometry, rebuild::Holes::Pad)?;
        (write_control(dir, &geometry, positions, mode)?, geometry)
    };
    let control_mode = fs::fstat(&control).or_os("look at", &control_path)?.st_mode & 0o777;
    let map = Map::new(&control, CONTROL_LEN, true).or_os("map", &control_path)?;
    let region = Region::new(map);
    gate.let_in().or_os("unlock", &dir.join(LOCK_NAME))?;
    let attachment = Attachment::attach(region.words(), lock_file)
        .map_err(|error| error.at_path(&dir.join(LOCK_NAME)))?;
    drop(gate);
    let writer = PerProcess::new(attachment).or_os("notice forks from", dir)?;
    let core = core(dir, options, geometry, filesystem, control_mode, Some(writer), region);
    core.check_words()?;
    pad::repair(&core, core.attachment()?)?;
    core.prepare_first(core.attachment()?);
    Ok(CoreRef(core))
}

fn open_read_only(dir: &Path, options: &Options) -> Result<CoreRef> {
    let filesystem = directory_filesystem(dir)?;
    let control_path = dir.join(CONTROL_NAME);
    let control = match sys::file::open(&control_path, OFlags::RDONLY, 0) {
        Ok(control) => Some(control),
        Err(Errno::NOENT) => None,
        Err(errno) => return Err(Error::os(errno, "open the control file", &control_path)),
    };
    let (geometry, mode) = match &control {
        Some(control) => {
            let mode = fs::fstat(control).or_os("look at", &control_path)?.st_mode & 0o777;
            (read_geometry(control, &control_path)?, mode)
        }
        // Perhaps one is being created at this moment; its first segment comes after.
        None if list(dir)?.is_empty() => {
            return Err(Error::new(ErrorKind::NotFound, "there is no log").at_path(dir));
        }
        None => (stored_geometry(dir)?, 0),
    };
    options.check_against(&geometry, dir)?;
    let region = match control {
        Some(control) if geometry.boot_id == sys::process::boot_id() => {
            let map = Map::new(&control, CONTROL_LEN, false).or_os("map", &control_path)?;
            Region::new(map)
        }
        // The words are lost: work them out for this reader alone, from the segments as they are.
        _ => {
            let region = Region::on_heap();
            rebuild::scan(dir, &geometry, rebuild::Holes::Leave)?.store(region.words());
            region
        }
    };
    let core = core(dir, options, geometry, filesystem, mode, None, region);
    core.check_words()?;
    Ok(CoreRef(core))
}

fn core(
    dir: &Path,
    options: &Options,
    geometry: Geometry,
    filesystem: Filesystem,
    mode: u32,
    writer: Option<PerProcess<Attachment>>,
    region: Region,
) -> Core {
    Core {
        dir: dir.to_path_buf(),
        codec: Codec::new(geometry.secret),
        filesystem,
        mode,
        prefault_bytes: options
            .prefault_bytes
            .unwrap_or(PREFAULT_BYTES_DEFAULT)
            .min(geometry.segment_capacity),
        mapped_bytes_max: options.mapped_bytes_max.unwrap_or(MAPPED_BYTES_MAX_DEFAULT),
        geometry,
        writer,
        region,
    }
}

fn make_directory(dir: &Path, mode: u32) -> Result<()> {
    // Who may read or write files may also search the directory.
    let search = (mode & 0o444) >> 2 | (mode & 0o222) >> 1;
    match fs::mkdir(dir, Mode::from_raw_mode(mode | search)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(Error::os(errno, "create the log's directory", dir)),
    }
}

fn directory_filesystem(dir: &Path) -> Result<Filesystem> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let fd = sys::file::open(dir, flags, 0).map_err(|errno| match errno {
        Errno::NOTDIR => {
            let message = "not a log: a log is a directory, and this is not one";
            Error::new(ErrorKind::Incompatible, message).at_path(dir)
        }
        Errno::NOENT => Error::new(ErrorKind::NotFound, "there is no log").at_path(dir),
        errno => Error::os(errno, "open the log's directory", dir),
    })?;
    Filesystem::of(&fd).or_os("tell the filesystem of", dir)
}

/// Refuses a directory with other things in it, which somebody named by mistake.
fn check_is_ours(dir: &Path, may_create: bool) -> Result<()> {
    let names = names(dir)?;
    if names.iter().any(|name| name == CONTROL_NAME || name == GEOMETRY_NAME) {
        return Ok(());
    }
    let is_ours = |name: &String| {
        [LOCK_NAME, UNFINISHED_CONTROL_NAME, UNFINISHED_NAME].contains(&name.as_str())
            || name.ends_with(SPARE_SUFFIX)
            || parse_file_name(name).is_some()
    };
    if let Some(stranger) = names.iter().find(|name| !is_ours(name)) {
        let message = format!(
            "not a log: the directory holds {stranger:?} and no control file; name a new or empty \
             directory"
        );
        return Err(Error::new(ErrorKind::Incompatible, message).at_path(dir));
    }
    if !may_create && !names.iter().any(|name| parse_file_name(name).is_some()) {
        return Err(Error::new(ErrorKind::NotFound, "there is no log").at_path(dir));
    }
    Ok(())
}

/// Opens the file that locks are taken on; only who may write may open it.
fn open_lock_file(dir: &Path, mode: u32) -> Result<OwnedFd> {
    let path = dir.join(LOCK_NAME);
    let fd = sys::file::open(&path, OFlags::RDWR | OFlags::CREATE, mode).or_os("open", &path)?;
    let found = fs::fstat(&fd).or_os("look at", &path)?.st_mode & 0o777;
    let writers = found & 0o222;
    let wanted = writers | writers << 1;
    if found != wanted {
        // Fails for who does not own the file; then its creator died between the two calls.
        let _ = fs::fchmod(&fd, Mode::from_raw_mode(wanted));
    }
    Ok(fd)
}

/// Makes the control file: of a new log, or again from the segments.
fn make_control(
    dir: &Path,
    options: &Options,
    filesystem: Filesystem,
    gate: &Gate,
    mode: u32,
) -> Result<OwnedFd> {
    require_alone(gate, dir)?;
    let (geometry, positions) = if list(dir)?.is_empty() {
        if options.never_create && !options.create_new {
            return Err(Error::new(ErrorKind::NotFound, "there is no log").at_path(dir));
        }
        let geometry = new_geometry(options, filesystem);
        (geometry, Positions::of_new_log(&geometry))
    } else {
        if options.create_new {
            let message = "there are segments of a log already";
            return Err(Error::new(ErrorKind::AlreadyExists, message).at_path(dir));
        }
        let geometry = Geometry { boot_id: sys::process::boot_id(), ..stored_geometry(dir)? };
        options.check_against(&geometry, dir)?;
        (geometry, rebuild::scan(dir, &geometry, rebuild::Holes::Pad)?)
    };
    write_file(dir, GEOMETRY_NAME, &geometry.to_bytes(), mode)?;
    write_control(dir, &geometry, positions, mode)
}

fn require_alone(gate: &Gate, dir: &Path) -> Result<()> {
    let path = dir.join(LOCK_NAME);
    if gate.is_alone().or_os("lock", &path)? {
        return Ok(());
    }
    let message = "the control file is missing although processes use the log; restore it, or end \
                   those processes";
    Err(Error::new(ErrorKind::Busy, message).at_path(&dir.join(CONTROL_NAME)))
}

fn new_geometry(options: &Options, filesystem: Filesystem) -> Geometry {
    let preallocate = options.preallocate.unwrap_or_default();
    let is_hazardous = filesystem.mapping_hazard().is_some() || preallocate == Preallocate::Sparse;
    let fill = if is_hazardous { Fill::Pwrite } else { Fill::Mapped };
    Geometry {
        layout: options.layout.unwrap_or_default(),
        segment_capacity: options.segment_capacity_bytes.unwrap_or(SEGMENT_CAPACITY_BYTES_DEFAULT),
        preallocate,
        fill: options.fill.unwrap_or(fill),
        secret: sys::process::random_u64(),
        boot_id: sys::process::boot_id(),
    }
}

/// Writes a complete control file and gives it its name.
fn write_control(
    dir: &Path,
    geometry: &Geometry,
    positions: Positions,
    mode: u32,
) -> Result<OwnedFd> {
    let mut bytes = geometry.to_bytes();
    // Written, not sparse: a store into the mapping must never need a block.
    bytes.resize(CONTROL_LEN, 0);
    positions.store_to_bytes(&mut bytes);
    write_file(dir, CONTROL_NAME, &bytes, mode)
}

fn write_file(dir: &Path, name: &str, bytes: &[u8], mode: u32) -> Result<OwnedFd> {
    let unfinished = dir.join(UNFINISHED_CONTROL_NAME);
    sys::file::check_size_limit(bytes.len() as u64).or_os("create a log in", dir)?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC;
    let fd = sys::file::open(&unfinished, flags, mode).or_os("create", &unfinished)?;
    sys::file::write_all_at(&fd, bytes, 0).or_os("write", &unfinished)?;
    fs::rename(&unfinished, dir.join(name)).or_os("name", &dir.join(name))?;
    Ok(fd)
}

/// The geometry from a control file, refusing whatever is none.
fn read_geometry(control: &OwnedFd, path: &Path) -> Result<Geometry> {
    let len = sys::file::len(control).or_os("look at", path)?;
    let mut bytes = vec![0; control::HEADER_LEN];
    let count = sys::file::read_up_to_at(control, &mut bytes, 0).or_os("read", path)?;
    let geometry = Geometry::parse(&bytes[..count]).map_err(|fault| header_error(fault, path))?;
    if len != CONTROL_LEN as u64 {
        let message = format!(
            "the control file has {len} bytes instead of {CONTROL_LEN}; when no process uses the \
             log, remove it to have it rebuilt from the segments"
        );
        return Err(Error::new(ErrorKind::Corrupt, message).at_path(path));
    }
    Ok(geometry)
}

/// The geometry from its own file, where the control file is gone.
fn stored_geometry(dir: &Path) -> Result<Geometry> {
    let path = dir.join(GEOMETRY_NAME);
    match std::fs::read(&path) {
        Ok(bytes) => Geometry::parse(&bytes).map_err(|fault| header_error(fault, &path)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if list(dir)?.is_empty() {
                return Err(Error::new(ErrorKind::NotFound, "there is no log").at_path(dir));
            }
            let message = "the directory holds segments but neither the control file nor the \
                           geometry file; restore one of them";
            Err(Error::new(ErrorKind::Corrupt, message).at_path(&path))
        }
        Err(error) => {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            Err(Error::os(errno, "read", &path))
        }
    }
}

fn header_error(fault: HeaderFault, path: &Path) -> Error {
    let (kind, message) = match fault {
        HeaderFault::NotAControlFile => {
            (ErrorKind::Incompatible, "not a log: the file is not Vellum's".to_string())
        }
        HeaderFault::Version(version) => {
            let ours = crate::format::VERSION;
            let message =
                format!("the log has format version {version}; this library reads version {ours}");
            (ErrorKind::Incompatible, message)
        }
        HeaderFault::Damaged => (
            ErrorKind::Corrupt,
            "the header is damaged; when no process uses the log, remove the control file to have \
             it rebuilt"
                .to_string(),
        ),
    };
    Error::new(kind, message).at_path(path)
}

impl Options {
    /// Refuses options that contradict what is stored in the log.
    fn check_against(&self, stored: &Geometry, dir: &Path) -> Result<()> {
        let contradiction = [
            contradict("layout", self.layout, stored.layout),
            contradict("segment capacity", self.segment_capacity_bytes, stored.segment_capacity),
            contradict("preallocation", self.preallocate, stored.preallocate),
            contradict("fill", self.fill, stored.fill),
        ];
        match contradiction.into_iter().flatten().next() {
            Some(message) => Err(Error::new(ErrorKind::InvalidOption, message).at_path(dir)),
            None => Ok(()),
        }
    }
}

fn contradict<T: PartialEq + std::fmt::Display>(
    what: &str,
    asked: Option<T>,
    stored: T,
) -> Option<String> {
    let asked = asked.filter(|asked| *asked != stored)?;
    Some(format!("the log was created with {what} {stored}, and {asked} was asked for"))
}

impl Positions {
    fn store(self, words: &crate::shared::words::Words) {
        words.cursor.store(Packed::new(self.tail, 0).to_word(), Ordering::Relaxed);
        words.ready_end.store(self.tail.get(), Ordering::Relaxed);
        words.allocated_end.store(self.allocated_end.get(), Ordering::Relaxed);
        words.begin.store(self.begin.get(), Ordering::Relaxed);
    }

    /// Lays the words into the bytes of a control file to be.
    fn store_to_bytes(self, bytes: &mut [u8]) {
        let values = [
            Packed::new(self.tail, 0).to_word(),
            self.tail.get(),
            self.allocated_end.get(),
            self.begin.get(),
        ];
        // The first four words of `Words`, each alone on two lines.
        for (index, value) in values.into_iter().enumerate() {
            let offset = control::HEADER_LEN + index * 128;
            bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
        }
    }
}
