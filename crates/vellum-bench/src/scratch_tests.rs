//! What is made for a run is there, and goes.

use super::*;
use crate::conditions::filesystem_of;

#[test]
fn names_are_read_as_they_are_written() {
    for kind in ScratchKind::ALL {
        assert_eq!(kind.to_string().parse::<ScratchKind>().unwrap(), kind);
    }
    assert!("ntfs".parse::<ScratchKind>().unwrap_err().to_string().contains("btrfs"));
}

#[test]
fn what_is_made_for_a_run_is_there_and_goes() {
    if let Err(missing) = ScratchKind::check(&[ScratchKind::Ext4]) {
        return eprintln!("left out: {missing}");
    }
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("room");
    let bytes = 32 << 20;
    let room = match Room::new(&dir, Room::bytes_for(bytes)) {
        Ok(room) => room,
        Err(error) => return eprintln!("left out: {error}"),
    };
    let scratch = room.furnish(ScratchKind::Ext4, bytes).unwrap();
    let mount = filesystem_of(scratch.dir()).unwrap();
    assert_eq!(mount.kind, "ext4");
    fs::write(scratch.dir().join("file"), [1; 4096]).unwrap();
    let device = mount.source.rsplit('/').next().unwrap().to_string();
    let backing = PathBuf::from(format!("/sys/block/{device}/loop/backing_file"));
    let image = fs::read_to_string(&backing).unwrap();
    assert!(image.contains(&format!("ext4-{}.image", std::process::id())), "{image}");
    drop(scratch);
    // Somebody else may have taken the device meanwhile, but not with our image.
    assert!(fs::read_to_string(&backing).map_or(true, |other| other != image));
    drop(room);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}
