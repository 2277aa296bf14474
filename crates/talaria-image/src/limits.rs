//! What a picture may cost, in one place.

/// Longest side of a picture that is decoded.
pub(crate) const MAX_SIDE: u32 = 65_535;
/// Most pixels of a picture that is decoded (specification 2.7).
pub(crate) const MAX_PIXELS: u64 = 100_000_000;
/// Most bytes a decoder may hold at a time where rows cannot be taken one by one.
pub(crate) const MAX_DECODER_BYTES: u64 = 304 << 20;
/// Most bytes of a decoder and of the pixels it delivers.
pub(crate) const MAX_DECODED_BYTES: u64 = 352 << 20;
/// Most bytes of an unpacked ICC profile.
pub(crate) const MAX_PROFILE_BYTES: usize = 4 << 20;
/// Most scans of a JPEG.
pub(crate) const MAX_SCANS: usize = 64;
/// Most scans of a JPEG times its pixels: what a progressive file may cost in time.
pub(crate) const MAX_SCAN_PIXELS: u64 = 1_000_000_000;
/// Most frames that are counted; a longer animation is one of "at least" so many.
pub(crate) const MAX_FRAMES_COUNTED: u32 = 100_000;
/// Most frames behind the first that are decoded to see whether they are whole.
pub(crate) const MAX_FRAMES_CHECKED: u32 = 100;
/// Most pixels of all these frames.
pub(crate) const MAX_PIXELS_CHECKED: u64 = 16_000_000;
/// Least share of a damaged picture that is worth showing, as one part of so many.
pub(crate) const LEAST_USEFUL_PART: u32 = 10;
/// Largest factor by which rows and columns are averaged while decoding.
/// Sums of 16 × 16 bytes still fit 16 bits.
pub(crate) const MAX_REDUCTION: u32 = 16;

/// Most bytes of an SVG.
pub(crate) const MAX_SVG_BYTES: usize = 8 << 20;
/// Most elements and letters of an SVG once everything referenced stands where it is used.
/// Each takes up to 4 µs to read.
pub(crate) const MAX_SVG_WEIGHT: u64 = 120_000;
/// Deepest nesting of its elements, references included.
pub(crate) const MAX_SVG_DEPTH: u32 = 96;
/// Most bytes its entities may become, by a coarse estimate.
pub(crate) const MAX_SVG_ENTITY_BYTES: u64 = 16 << 20;
/// Most attributes of one element, each of which is compared with all others.
pub(crate) const MAX_SVG_ATTRIBUTES: usize = 1_000;
/// Most pairs of style rules and elements.
pub(crate) const MAX_SVG_STYLE_PAIRS: u64 = 4_000_000;
/// Most nanoseconds that drawing may take by estimate.
pub(crate) const MAX_SVG_NANOSECONDS: u64 = 500_000_000;
/// Most bytes of all layers that are held at a time.
pub(crate) const MAX_SVG_LAYER_BYTES: u64 = 200 << 20;
/// Most pixels of what an SVG is drawn on.
pub(crate) const MAX_SVG_CANVAS: u64 = 4_000_000;
/// Most pixels of one picture inside an SVG, and of all of them.
pub(crate) const MAX_SVG_PICTURE_PIXELS: u64 = 16_000_000;

/// Processor time of the process that draws an SVG, in seconds.
pub(crate) const MAX_DRAWING_SECONDS: u64 = 1;
/// Data of that process, in bytes.
pub(crate) const MAX_DRAWING_MEMORY: u64 = 384 * 1024 * 1024;
/// Longest answer of that process, in bytes: pictures within the largest budget, as JSON.
pub(crate) const MAX_DRAWING_ANSWER: usize = 96 * 1024 * 1024;
