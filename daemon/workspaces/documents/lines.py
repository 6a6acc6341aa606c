"""Convert the bytes of a file to text, and text to lines as editors count them: only LF and CR LF end a line."""

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def decode(data: bytes) -> tuple[str, str | None]:
    """Return the text of a file, with invalid bytes and NUL replaced, and a sentence about the first of these."""
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return "", "The file is UTF-16; only UTF-8 is read."
    data = data.removeprefix(BOM_UTF8)
    problem = None
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"Line {line}: byte 0x{data[error.start]:02x} is not UTF-8; it is read as {REPLACEMENT}."
        text = data.decode("utf-8", "replace")
    at = text.find("\0")
    if at >= 0:
        problem = problem or f"Line {text.count(chr(10), 0, at) + 1}: there is a NUL byte; it is read as {REPLACEMENT}."
        text = text.replace("\0", REPLACEMENT)
    return text, problem


def split(text: str) -> list[str]:
    """Return the lines of a text without their ends; an empty last line is dropped."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines
