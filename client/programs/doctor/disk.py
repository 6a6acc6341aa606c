"""Checks of the data folders and their disk."""

import os
import stat
from pathlib import Path

from memoryd.client.programs.doctor.patient import Finding, Patient, check_access, fail, quote_path, report_ok, warn
from memoryd.client.programs.memctl.text_table import size_text

FAIL_BYTES, WARN_BYTES = 200_000_000, 1_000_000_000  # with less free space the check fails, or warns
FAIL_INODES, WARN_INODES = 100, 10_000

# File systems without locks and shared memory between machines: SQLite's write-ahead log is not safe on them.
NETWORK = frozenset(
    "nfs nfs4 cifs smb3 smbfs ncpfs afs ceph fuse.ceph glusterfs fuse.glusterfs lustre gfs2 ocfs2 9p fuse.sshfs"
    " fuse.rclone fuse.s3fs fuse.gcsfuse fuse.goofys davfs fuse.davfs2 fuse.gvfsd-fuse fuse.onedriver".split()
)
VOLATILE = frozenset({"tmpfs", "ramfs"})


def check_data(patient: Patient) -> Finding | None:
    """Check that the data directory is on a disk of this machine, can be written and is private.

    In a private folder the modes of the files do not matter: no other user can reach them.
    """
    folder = _nearest_folder(patient.data_dir).resolve()
    kind = filesystem_kind(patient.read_system_file("self/mountinfo"), folder)
    if kind in NETWORK:
        message = f"{folder} is on {kind}, a network file system: SQLite's write-ahead log is not safe there"
        return fail(message, "memctl down; move the folder to a local disk and set MEMORYD_DATA_DIR")
    if patient.data_dir.exists() and (wrong := _check_own(patient.data_dir)):
        return wrong
    if kind in VOLATILE:
        message = f"{folder} is on {kind}, in memory: everything is lost after a restart of the machine"
        return warn(message, "choose a folder on a disk with MEMORYD_DATA_DIR")
    return report_ok(f"{patient.data_dir}, private to you") if patient.data_dir.exists() else None


def _check_own(folder: Path) -> Finding | None:
    """Return a finding if a folder is not writable, or readable by other users."""
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return fail(f"the file system of {folder} is read-only", "dmesg | tail  # then: mount -o remount,rw")
    if not os.access(folder, os.W_OK | os.X_OK):
        return fail(f"you may not write in {folder}", safe=[["chmod", "u+rwx", str(folder)]])
    wanted = [(folder, 0o700)]
    private = check_access(folder, 0o700) is None
    for path in sorted(folder.iterdir()):
        kind = path.lstat().st_mode
        if stat.S_ISREG(kind) or stat.S_ISDIR(kind):
            wanted.append((path, 0o777 if private else 0o700 if stat.S_ISDIR(kind) else 0o600))
    wrong = [found for path, mode in wanted if (found := check_access(path, mode))]
    return _merge_findings(wrong) if wrong else None


def _merge_findings(wrong: list[Finding]) -> Finding:
    """Return one finding for several files: the first and how many more there are."""
    commands = [words for finding in wrong for words in finding.commands]
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    if len(commands) == len(wrong):
        return fail(f"{wrong[0].message}{more}", safe=commands)
    foreign = next(finding for finding in wrong if not finding.commands)
    return fail(f"{foreign.message}{more}", foreign.fix)


def check_disk(patient: Patient) -> Finding:
    """Check the free space and the free inodes; some file systems have no limit of inodes."""
    folder = _nearest_folder(patient.data_dir)
    space = os.statvfs(folder)
    free, files = space.f_bavail * space.f_frsize, space.f_favail if space.f_files else WARN_INODES
    room, fix = f"{size_text(free)} free", f"free space on the disk of {folder}: df -h {quote_path(folder)}"
    more, fix_files = f"{files:,} more files fit", f"delete small files: du --inodes -xs {quote_path(folder.parent)}/*"
    if patient.status and patient.status.disk_full:
        return fail(f"{room}: the disk was full, nothing is added until there is room", fix)
    if free < FAIL_BYTES:
        return fail(room, fix)
    if files < FAIL_INODES:
        return fail(more, fix_files)
    if free < WARN_BYTES:
        return warn(room, fix)
    return warn(more, fix_files) if files < WARN_INODES else report_ok(room)


def filesystem_kind(mounts: str, folder: Path) -> str:
    """Return the type of a folder's file system according to `mountinfo`: the last of the longest matches."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        point = before.split()[4].encode().decode("unicode_escape")  # spaces are escaped as \040
        if folder.is_relative_to(point) and len(point) >= best:
            best, kind = len(point), after.split()[0]
    return kind


def _nearest_folder(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())
