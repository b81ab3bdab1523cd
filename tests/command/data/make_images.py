"""Writes image files without any library of images: PNG by zlib, JPEG with a table that codes the means of blocks."""
import struct
import zlib


def png(path, rows, channels):
    """Writes a PNG file. rows: lists of samples, `channels` for each pixel: 1 is grey, 3 are red, green and blue."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", len(rows[0]) // channels, len(rows), 8, {1: 0, 3: 2}[channels], 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b""))


def jpeg(path, blocks):
    """Writes a grey JPEG image of blocks of 8 x 8 equal samples. Each block is its mean alone (ITU-T T.81): quantised
    by 8, the difference to the one before, and the end of the block, which takes one bit."""
    def segment(marker, data):
        return struct.pack(">BBH", 0xff, marker, len(data) + 2) + data

    bits, before = "", 0
    for row in blocks:
        for sample in row:
            difference, before = sample - 128 - before, sample - 128
            size = abs(difference).bit_length()
            bits += f"{size:04b}"  # twelve codes of four bits
            if size:
                bits += f"{difference if difference > 0 else difference + (1 << size) - 1:0{size}b}"
            bits += "0"
    bits += "1" * (-len(bits) % 8)
    data = bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8)).replace(b"\xff", b"\xff\0")
    means = bytes([0] + [0, 0, 0, 12] + [0] * 12 + list(range(12)))  # how many codes of each length, and their meaning
    ends = bytes([0x10] + [1] + [0] * 15 + [0])
    with open(path, "wb") as file:
        file.write(b"\xff\xd8" + segment(0xdb, bytes([0] + [8] * 64)) +
                   segment(0xc0, struct.pack(">BHHBBBB", 8, 8 * len(blocks), 8 * len(blocks[0]), 1, 1, 0x11, 0)) +
                   segment(0xc4, means) + segment(0xc4, ends) +
                   segment(0xda, bytes([1, 1, 0, 0, 63, 0])) + data + b"\xff\xd9")
