"""Hostile archives, one per attack, each with the expected result: the import is refused, or the attack is neutralised.

Every archive that escapes the layer targets a canary directory of the test; none could harm the machine.
"""
import gzip
import io
import random
import struct
import tarfile
import zlib

from world import directory, entry, hard_link, link, tar_bytes

MIB = 1 << 20


class Case:
    def __init__(self, name, data, refused=None, reported=None, absent=(), present=(), noted=None):
        self.name, self.data = name, data
        self.refused = refused      # text of the error; the import must fail
        self.reported = reported    # text of a report line; the import must succeed
        self.noted = noted or reported  # text of a note of `image inspect`
        self.absent = absent        # paths that must not exist in the layer
        self.present = present      # paths that must exist in the layer


def raw_header(name, size=0, kind=b"0", mode=b"0000644\0", linkname=b"", magic=b"ustar\00000", size_field=None):
    """Returns a tar header without the checks of tarfile."""
    header = bytearray(512)
    header[0:len(name)] = name
    header[100:108] = mode
    header[108:116] = header[116:124] = b"0000000\0"
    header[124:136] = size_field or b"%011o\0" % size
    header[136:148] = b"00000000000\0"
    header[148:156] = b" " * 8
    header[156:157] = kind
    header[157:157 + len(linkname)] = linkname
    header[257:265] = magic
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


def padded(data):
    return data + bytes(-len(data) % 512)


END = bytes(1024)


def pax(records):
    body = b""
    for key, value in records.items():
        value = value if isinstance(value, bytes) else value.encode()
        line = b" " + key.encode() + b"=" + value + b"\n"
        length = len(line)
        while len(str(length + len(str(length)))) != len(str(length)):
            length += 1
        total = len(line) + len(str(len(line)))
        if len(str(total)) != len(str(len(line))):
            total += 1
        body += str(total).encode() + line
    return raw_header(b"pax", len(body), b"x") + padded(body)


def file_of(records, name=b"file", data=b"x", **fields):
    return pax(records) + raw_header(name, len(data), **fields) + padded(data)


def traversal(canary):
    up = "../" * 12
    yield Case("dot dot name", tar_bytes([entry(f"{up}{canary}/x", b"x")]), refused="contains `..`")
    yield Case("dot dot in the middle", tar_bytes([entry("a/../../b", b"x")]), refused="contains `..`")
    yield Case("only dot dot", tar_bytes([directory("..")]), refused="contains `..`")
    yield Case("dot dot directory", tar_bytes([directory("a/..")]), refused="contains `..`")
    yield Case("absolute name", tar_bytes([entry(f"/{canary}/x", b"x")]), reported="absolute name made relative", present=[f"{canary}/x"])
    yield Case("double slash name", tar_bytes([entry(f"//{canary}/x", b"x")]), reported="absolute name made relative")
    yield Case("pax path with dot dot", file_of({"path": f"{up}{canary}/x"}) + END, refused="contains `..`")
    yield Case("pax absolute path", file_of({"path": f"/{canary}/x"}) + END, reported="absolute name made relative")
    yield Case("GNU long name with dot dot", raw_header(b"././@LongLink", 300, b"L") + padded((up + str(canary) + "/").encode().ljust(300, b"x")) + raw_header(b"n", 1) + padded(b"x") + END, refused="contains `..`")
    yield Case("empty name", raw_header(b"", 1) + padded(b"x") + END, refused="the entry has no name")
    yield Case("name of slashes", tar_bytes([entry("///", b"x")]), refused="Damaged tar archive")
    yield Case("name is a dot", tar_bytes([entry(".", b"x")]), refused="no name")
    yield Case("newline and escape in a name", tar_bytes([entry("a\n\x1b[2Jb", b"x", mode=0o4755)]), reported="setuid bit removed")


def links(canary):
    up = "../" * 12
    yield Case("entry through an absolute link", tar_bytes([link("out", f"/{canary}"), entry("out/x", b"x")]), refused="leads to no directory of the layer")
    yield Case("entry through a climbing link", tar_bytes([link("out", f"{up}{canary}"), entry("out/x", b"x")]), refused="leads to no directory of the layer")
    yield Case("entry through a link to the root", tar_bytes([link("out", "/"), entry("out/x", b"x")]), present=["x"])
    yield Case("entry through a link to a directory", tar_bytes([directory("usr/lib"), link("lib", "usr/lib"), entry("lib/x", b"x")]), present=["usr/lib/x"])
    yield Case("entry through a chain of links", tar_bytes([directory("a"), link("b", "a"), link("c", "/b"), link("d", "../../c"), entry("d/x", b"x")]), reported="climbs above the root", present=["a/x"])
    yield Case("entry through a loop of links", tar_bytes([link("a", "b"), link("b", "a"), entry("a/x", b"x")]), refused="form a loop")
    yield Case("file over a link", tar_bytes([link("x", f"/{canary}/victim"), entry("x", b"changed")]), reported="duplicate entry", present=["x"])
    yield Case("directory over a link", tar_bytes([link("x", f"/{canary}"), directory("x", mode=0o777), entry("x/y", b"y")]), reported="duplicate entry", present=["x/y"])
    yield Case("link over a directory with files", tar_bytes([directory("d"), entry("d/f", b"f"), link("d", f"/{canary}"), entry("d/g", b"g")]), refused="leads to no directory of the layer")
    yield Case("climbing link", tar_bytes([link("l", f"{up}etc/passwd")]), reported="climbs above the root")
    yield Case("link without a target", raw_header(b"l", 0, b"2") + END, refused="the target of the link is empty")
    yield Case("link with a long target", tar_bytes([link("l", "a/" * 3000)]), refused="too long")
    yield Case("link to /proc/self/root", tar_bytes([link("p", "/proc/self/root"), entry("p/x", b"x")]), refused="leads to no directory of the layer")
    yield Case("link to an open descriptor", tar_bytes([link("p", "/proc/self/fd/3"), entry("p/x", b"x")]), refused="leads to no directory of the layer")
    yield Case("hard link outside", tar_bytes([hard_link("h", f"{up}{canary}/victim")]), refused="contains `..`")
    yield Case("absolute hard link", tar_bytes([hard_link("h", f"/{canary}/victim")]), refused="not a file of this layer")
    yield Case("hard link through a link", tar_bytes([link("out", f"/{canary}"), hard_link("h", "out/victim")]), refused="not a file of this layer")
    yield Case("hard link to a missing file", tar_bytes([hard_link("h", "missing")]), refused="not a file of this layer")
    yield Case("hard link to a directory", tar_bytes([directory("d"), hard_link("h", "d")]), refused="not a file of this layer")
    yield Case("hard link to itself", tar_bytes([entry("h", b"x"), hard_link("h", "h")]), present=["h"])
    yield Case("hard link to a link, then data", tar_bytes([link("l", f"/{canary}/victim"), hard_link("h", "l"), entry("h", b"changed")]), reported="duplicate entry", present=["h"])


def types(canary):
    yield Case("character device", tar_bytes([entry("dev/mem", type=tarfile.CHRTYPE, devmajor=1, devminor=1)]), reported="character device left out", absent=["dev/mem"])
    yield Case("block device", tar_bytes([entry("dev/sda", type=tarfile.BLKTYPE, devmajor=8, devminor=0)]), reported="block device left out", absent=["dev/sda"])
    yield Case("a raw whiteout device", tar_bytes([entry("gone", type=tarfile.CHRTYPE, devmajor=0, devminor=0)]), reported="character device left out", absent=["gone"])
    yield Case("FIFO", tar_bytes([entry("pipe", type=tarfile.FIFOTYPE)]), reported="FIFO left out", absent=["pipe"])
    yield Case("device over a file", tar_bytes([entry("f", b"x"), entry("f", type=tarfile.CHRTYPE, devmajor=1, devminor=3)]), reported="character device left out", present=["f"])
    yield Case("setuid program", tar_bytes([entry("su", b"x", mode=0o4755)]), reported="setuid bit removed")
    yield Case("setgid program", tar_bytes([entry("sg", b"x", mode=0o2755)]), reported="setgid bit removed")
    yield Case("setgid directory", tar_bytes([directory("mail", mode=0o2775)]), reported="setgid bit removed")
    yield Case("setuid by a second entry", tar_bytes([entry("su", b"x"), entry("su", b"x", mode=0o6755)]), reported="setuid bit removed")
    yield Case("setuid hard link", tar_bytes([entry("a", b"x"), hard_link("b", "a", mode=0o4755)]), reported="setuid bit removed")
    yield Case("unreadable directory with files", tar_bytes([directory("d", mode=0), entry("d/f", b"f", mode=0)]), present=["d/f"])
    for name in ("security.capability", "trusted.overlay.opaque", "user.overlay.opaque", "user.overlay.redirect", "user.overlay.metacopy", "security.selinux", "user.mine"):
        yield Case(f"attribute {name}", file_of({f"SCHILY.xattr.{name}": b"y\1\2"}) + END, reported="extended attributes removed", noted=f"extended attributes removed: {name}", present=["file"])
    yield Case("access control list", file_of({"SCHILY.acl.access": "user::rwx,user:0:rwx,group::r-x,mask::rwx,other::r-x"}) + END, reported="extended attributes removed", noted="extended attributes removed: system.posix_acl")


def whiteouts(canary):
    yield Case("whiteout that climbs", tar_bytes([entry(".wh...")]), refused="invalid whiteout")
    yield Case("whiteout of nothing", tar_bytes([entry(".wh.")]), refused="invalid whiteout")
    yield Case("whiteout of a dot", tar_bytes([entry(".wh..")]), refused="invalid whiteout")
    yield Case("whiteout through a link", tar_bytes([link("out", f"/{canary}"), entry("out/.wh.victim")]), refused="leads to no directory of the layer")
    yield Case("entry below a whiteout", tar_bytes([entry(".wh.d/f", b"x")]), refused="below a whiteout")
    yield Case("aufs metadata", tar_bytes([directory(".wh..wh.plnk")]), reported="aufs metadata left out")
    yield Case("whiteout of a file of the same layer", tar_bytes([entry("f", b"x"), entry(".wh.f")]), present=["f"])
    yield Case("opaque marker below a file", tar_bytes([entry("f", b"x"), entry("f/.wh..wh..opq")]), refused="a file is in place of a directory")


def bombs(canary):
    yield Case("deep name", tar_bytes([entry("d/" * 200 + "f", b"x")]), refused="nested too deeply")
    yield Case("long name", tar_bytes([entry("/".join(["n" * 200] * 30), b"x")]), refused="too long")
    yield Case("long component", tar_bytes([entry("n" * 300, b"x")]), refused="too long")
    compressed = gzip.compress(b"\0" * (300 * MIB), 9)
    yield Case("compressed zeros", compressed, refused="decompression bomb")
    yield Case("compressed file of zeros", gzip.compress(raw_header(b"zeros", 400 * MIB) + b"\0" * (400 * MIB) + END, 9), refused="decompression bomb")
    yield Case("sparse file of a terabyte", file_of({"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "sparse", "GNU.sparse.realsize": str(1 << 40)},
                                                    data=b"1\n0\n1\n".ljust(512, b"\0") + b"x") + END, refused="size limit")
    yield Case("file larger than the archive", raw_header(b"big", size_field=b"%011o\0" % (8 << 30)) + END, refused="Truncated tar archive")
    yield Case("enormous base-256 size", raw_header(b"big", size_field=b"\x80" + struct.pack(">Q", (1 << 62)).rjust(11, b"\0")) + END, refused="exceed the size limit")
    yield Case("negative size", raw_header(b"big", size_field=b"\xff" * 12) + END, refused="negative size")
    yield Case("enormous pax size", pax({"size": str((1 << 63) - 1)}) + raw_header(b"f", 1) + padded(b"x") + END, refused="size attribute overflow")
    yield Case("many duplicate entries", tar_bytes([entry("same", b"x")] * 2000), reported="duplicate entry", present=["same"])
    yield Case("long pax record", pax({"comment": "c" * (3 * MIB)}) + raw_header(b"f", 1) + padded(b"x") + END, refused="Special header too large")


DEEP = "/".join(["d" * 240] * 16)  # 3855 bytes


def long_name(kind, text):
    """Returns a GNU header with the name (L) or link target (K) of the next entry."""
    return raw_header(b"././@LongLink", len(text) + 1, kind) + padded(text + b"\0")


def many(count, make):
    """Returns a compressed archive of `count` entries. make(number, noise) returns one entry; noise keeps the compression
    ratio below that of a bomb."""
    noise = random.Random(1)
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as packed:
        for number in range(count):
            packed.write(make(number, b"%032x" % noise.getrandbits(128)))
        packed.write(END)
    return out.getvalue()


def long_texts():
    """Entries without content whose names or link targets would fill the memory."""
    deep = DEEP.encode()
    refused = "the names, link targets and attributes of the layer take more than 256 MiB"
    yield Case("names", many(70_000, lambda number, noise: long_name(b"L", deep + b"/.wh." + noise) + raw_header(b"n")), refused=refused)
    yield Case("link targets", many(70_000, lambda number, noise: long_name(b"K", deep + b"/" + noise) + raw_header(b".wh..wh.l", kind=b"2", linkname=b"l")), refused=refused)


def long_paths():
    """Short names whose directory is a link: the record of the layer would have 17,000 paths of 34 KB."""
    entries, top = [], ""
    for level in range(9):
        entries += [directory(f"{top}{DEEP}"), link(f"l{level}", f"{top}{DEEP}")]
        top = f"l{level}/"
    archive = tar_bytes(entries).rstrip(b"\0")
    files = b"".join(raw_header(b"l8/%d" % number) for number in range(17_000))
    return Case("paths behind links", padded(archive) + files + END, refused="the paths of its files take more than 512 MiB")


def damage(canary):
    good = tar_bytes([entry("f", b"x" * 3000)])
    yield Case("truncated archive", good[:1500], refused="Truncated tar archive")
    yield Case("truncated gzip", gzip.compress(good)[:-9], refused="ends early")
    yield Case("damaged gzip", gzip.compress(good)[:30] + b"\xff" * 40, refused="damaged")
    yield Case("wrong gzip checksum", gzip.compress(good)[:-8] + b"\0" * 8, refused="damaged")
    yield Case("data after the padding of gzip", gzip.compress(good) + b"\0" * 512 + gzip.compress(good),
               refused="data after the end of the gzip stream")
    yield Case("data after gzip", gzip.compress(good) + b"attack", refused="the gzip data is damaged")
    yield Case("damaged zstd", b"\x28\xb5\x2f\xfd" + b"\xff" * 100, refused="the zstd data is damaged: Unsupported")
    yield Case("zstd with a huge window", b"\x28\xb5\x2f\xfd" + b"\x00" + b"\xf8" + b"\0" * 20, refused="too much memory")
    yield Case("bzip2", b"BZh91AY&SY" + b"\0" * 30, refused="bzip2")
    yield Case("xz", b"\xfd7zXZ\0" + b"\0" * 30, refused="xz")
    yield Case("not an archive", b"#!/bin/sh\necho hello\n" * 50, refused="not a tar archive")
    yield Case("wrong header checksum", good[:148] + b"0000000\0" + good[156:], refused="not a tar archive")
    yield Case("zip", b"PK\x03\x04" + bytes(200), refused="not a tar archive")
    yield Case("gzip in gzip", gzip.compress(gzip.compress(good)), refused="not a tar archive")


def all_cases(canary):
    for group in (traversal, links, types, whiteouts, bombs, damage):
        yield from group(canary)
