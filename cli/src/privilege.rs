//! Programs that gain rights when they start: the loader ignores `LD_PRELOAD` for them.

use crate::failure::{Failure, NOT_EXECUTABLE};
use rustix::fs::{Mode, StatVfsMountFlags, fgetxattr_query, fstat, fstatvfs};
use rustix::io::Errno;
use rustix::process::{Gid, Uid, getgid, getuid};
use rustix::thread::no_new_privs;
use std::fs::File;
use std::path::Path;

/// Where the kernel keeps a file's capabilities.
const CAPABILITIES: &str = "security.capability";

/// How a file gains rights for the one who starts it.
#[derive(Debug, PartialEq, Eq)]
enum Gain {
    User,
    Group,
    Capabilities,
}

/// Fails if starting `file`, whose name is `program`, gives it rights that its user has not.
pub fn check(program: &Path, file: &File) -> Result<(), Failure> {
    let cannot_look = |error: Errno| {
        Failure::new(NOT_EXECUTABLE, format!("{}: cannot be looked at: {error}", program.display()))
    };
    let stat = fstat(file).map_err(cannot_look)?;
    let mount = fstatvfs(file).map_err(cannot_look)?;
    if mount.f_flag.contains(StatVfsMountFlags::NOSUID) || no_new_privs().unwrap_or(false) {
        return Ok(());
    }
    let owner = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
    let has_capabilities = fgetxattr_query(file, CAPABILITIES).is_ok_and(|size| size > 0);
    let gain =
        gain(Mode::from_raw_mode(stat.st_mode), owner, (getuid(), getgid()), has_capabilities);
    let (what, remedy) = match gain {
        None => return Ok(()),
        Some(Gain::User) => ("is setuid", "chmod u-s"),
        Some(Gain::Group) => ("is setgid", "chmod g-s"),
        Some(Gain::Capabilities) => ("has file capabilities", "setcap -r"),
    };
    Err(Failure::new(
        NOT_EXECUTABLE,
        format!(
            "{}: {what}, so the loader would ignore LD_PRELOAD; run a copy without it (`{remedy}`)",
            program.display()
        ),
    ))
}

/// What `user` gains by starting a file of `owner`, by the kernel's rules. Bits that change nothing for this user
/// are none, and capabilities are nothing to root, who has them.
fn gain(mode: Mode, owner: (Uid, Gid), user: (Uid, Gid), has_capabilities: bool) -> Option<Gain> {
    if mode.contains(Mode::SUID) && owner.0 != user.0 {
        Some(Gain::User)
    } else if mode.contains(Mode::SGID | Mode::XGRP) && owner.1 != user.1 {
        Some(Gain::Group)
    } else if has_capabilities && !user.0.is_root() {
        Some(Gain::Capabilities)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: (Uid, Gid) = (Uid::ROOT, Gid::ROOT);

    fn someone() -> (Uid, Gid) {
        (Uid::from_raw(1000), Gid::from_raw(1000))
    }

    fn gained(mode: u32, owner: (Uid, Gid), user: (Uid, Gid)) -> Option<Gain> {
        gain(Mode::from_raw_mode(mode), owner, user, false)
    }

    #[test]
    fn another_users_setuid_and_setgid_programs_gain() {
        assert_eq!(gained(0o4755, ROOT, someone()), Some(Gain::User));
        assert_eq!(gained(0o2755, ROOT, someone()), Some(Gain::Group));
        assert_eq!(gained(0o4755, someone(), ROOT), Some(Gain::User));
        assert_eq!(gained(0o755, ROOT, someone()), None);
    }

    #[test]
    fn the_users_own_gain_nothing() {
        assert_eq!(gained(0o6755, someone(), someone()), None);
        assert_eq!(gained(0o6755, ROOT, ROOT), None);
    }

    #[test]
    fn setgid_without_group_execution_means_a_lock_not_a_gain() {
        assert_eq!(gained(0o2745, ROOT, someone()), None);
    }

    #[test]
    fn capabilities_are_a_gain_except_to_root() {
        let mode = Mode::from_raw_mode(0o755);
        assert_eq!(gain(mode, ROOT, someone(), true), Some(Gain::Capabilities));
        assert_eq!(gain(mode, ROOT, ROOT, true), None);
    }
}
