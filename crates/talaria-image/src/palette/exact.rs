//! Pictures that have few colours to begin with.

use super::{Indices, KEYS, Palette};
use crate::raster::{Layout, Raster};

/// Most colours of a palette.
const MOST: usize = 256;
/// Slots of the table that finds a colour: a power of two, mostly empty.
const SLOTS: usize = 2_048;

/// A picture of at most 256 colours with exactly these.
pub(crate) struct Exact {
    pub(crate) palette: Palette,
    keys: Vec<u16>,
    width: usize,
}

impl Exact {
    /// `None` when an opaque picture has more colours; that shows after a few rows mostly.
    pub(crate) fn of(raster: &Raster) -> Option<Self> {
        let mut finder = Finder::new();
        let mut keys = Vec::new();
        let mut last = None;
        let mut visit = |colour: [u8; 3]| -> Option<()> {
            let key = match last {
                Some((same, key)) if same == colour => key,
                _ => finder.key(colour)?,
            };
            last = Some((colour, key));
            keys.push(key);
            Some(())
        };
        match raster.layout {
            Layout::Grey => raster.pixels.iter().try_for_each(|&grey| visit([grey; 3])),
            Layout::Rgb => {
                let (pixels, _) = raster.pixels.as_chunks::<3>();
                pixels.iter().try_for_each(|&colour| visit(colour))
            }
        }?;
        let mut index = vec![0; KEYS];
        for (slot, key) in index.iter_mut().zip(0..=u8::MAX) {
            *slot = key;
        }
        Some(Self {
            palette: Palette {
                colours: finder.colours,
                index: index.try_into().ok()?,
                error: 0.0,
            },
            keys,
            width: usize::try_from(raster.width).ok()?,
        })
    }

    /// The picture, a key per pixel.
    pub(crate) fn indices(&self) -> Indices<'_> {
        Indices::new(&self.keys, self.width)
    }
}

/// Numbers colours in the order they turn up.
struct Finder {
    colours: Vec<[u8; 3]>,
    slots: Vec<Option<u16>>,
}

impl Finder {
    fn new() -> Self {
        Self {
            colours: Vec::with_capacity(MOST),
            slots: vec![None; SLOTS],
        }
    }

    fn key(&mut self, colour: [u8; 3]) -> Option<u16> {
        let [r, g, b] = colour.map(usize::from);
        let mut slot = (r * 7_919 + g * 104_729 + b * 1_299_709) % SLOTS;
        loop {
            let entry = self.slots.get_mut(slot)?;
            match *entry {
                None if self.colours.len() == MOST => return None,
                None => {
                    let key = u16::try_from(self.colours.len()).ok()?;
                    self.colours.push(colour);
                    *entry = Some(key);
                    return Some(key);
                }
                Some(key) if self.colours.get(usize::from(key)) == Some(&colour) => {
                    return Some(key);
                }
                Some(_) => slot = (slot + 1) % SLOTS,
            }
        }
    }
}
