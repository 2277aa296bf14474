//! The arguments of `talaria image`.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use talaria_image::{DEFAULT_BUDGET, DEFAULT_MAX_SIDE, Region, Target, Tiling};

/// Units of a budget.
const UNITS: [(&str, usize); 3] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("B", 1)];

/// `image`.
#[derive(Debug, Subcommand)]
pub enum ImageCommand {
    /// Prepare pictures as for a model and show what became of them.
    Prepare(PrepareArguments),
}

/// `image prepare`.
#[derive(Debug, Args)]
pub struct PrepareArguments {
    /// Pictures of any kind.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Write the prepared pictures into this folder.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Most characters of the `data:` URL of a picture: 262144, 256KiB, 1MiB.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value_t = DEFAULT_BUDGET)]
    pub budget: usize,
    /// Longest side in pixels.
    #[arg(long, value_name = "PIXELS", default_value_t = DEFAULT_MAX_SIDE)]
    pub max_side: u32,
    /// Whether a picture may be cut into tiles.
    #[arg(long, default_value = "off")]
    pub tiles: TilesArgument,
    /// Most tiles of a picture.
    #[arg(long, value_name = "N", default_value = "4")]
    pub most_tiles: NonZeroUsize,
    /// Show only this part: left, top, right and bottom edge in pixels.
    #[arg(long, value_name = "X1,Y1,X2,Y2", value_parser = region, allow_hyphen_values = true)]
    pub region: Option<Region>,
    /// Use PNG and JPEG only.
    #[arg(long)]
    pub no_webp: bool,
    /// Prepare every file so many times; the table shows the median time, --json all.
    #[arg(long, value_name = "N", default_value = "1")]
    pub repeat: NonZeroU32,
}

impl PrepareArguments {
    /// What the pictures must become.
    #[must_use]
    pub const fn target(&self) -> Target {
        let most = self.most_tiles.get();
        Target {
            budget: self.budget,
            max_side: self.max_side,
            webp: !self.no_webp,
            region: self.region,
            tiling: match self.tiles {
                TilesArgument::Off => Tiling::Off,
                TilesArgument::Auto => Tiling::Auto { most },
                TilesArgument::On => Tiling::On { most },
            },
        }
    }
}

/// When a picture is cut into tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TilesArgument {
    /// Never.
    Off,
    /// Where one picture would be unreadable.
    Auto,
    /// Wherever a picture has to shrink.
    On,
}

fn size(text: &str) -> Result<usize, String> {
    let wrong = || format!("`{text}` is no size; write 262144, 256KiB or 1MiB");
    let digits_end = text.find(|letter: char| !letter.is_ascii_digit());
    let (digits, unit) = text.split_at(digits_end.unwrap_or(text.len()));
    let factor = match UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))
    {
        Some((_, factor)) => *factor,
        None if unit.is_empty() => 1,
        None => return Err(wrong()),
    };
    let number = digits.parse::<usize>().ok();
    number
        .and_then(|number| number.checked_mul(factor))
        .ok_or_else(wrong)
}

fn region(text: &str) -> Result<Region, String> {
    let numbers: Result<Vec<i64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
    match numbers.as_deref() {
        Ok([x1, y1, x2, y2]) => Ok(Region {
            x1: *x1,
            y1: *y1,
            x2: *x2,
            y2: *y2,
        }),
        _ => Err("a region is four whole numbers: X1,Y1,X2,Y2".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use talaria_image::{Region, Tiling};

    use super::{ImageCommand, PrepareArguments, size};
    use crate::arguments::{Arguments, Command};

    fn parsed(arguments: &[&str]) -> PrepareArguments {
        let line = ["talaria", "image", "prepare"].iter().chain(arguments);
        let command = Arguments::try_parse_from(line).unwrap().command;
        let Command::Image(ImageCommand::Prepare(arguments)) = command else {
            panic!("{command:?}");
        };
        arguments
    }

    #[test]
    fn defaults_are_those_of_the_service() {
        assert_eq!(
            parsed(&["a.png"]).target(),
            talaria_image::Target::default()
        );
    }

    #[test]
    fn a_target_is_read_from_the_line() {
        let target = parsed(&[
            "a.png",
            "--budget",
            "128KiB",
            "--region",
            "-5,0,10,20",
            "--tiles",
            "auto",
            "--no-webp",
            "--max-side",
            "800",
        ])
        .target();
        let region = Region {
            x1: -5,
            y1: 0,
            x2: 10,
            y2: 20,
        };
        assert_eq!(
            (
                target.budget,
                target.region,
                target.tiling,
                target.webp,
                target.max_side
            ),
            (131_072, Some(region), Tiling::Auto { most: 4 }, false, 800)
        );
    }

    #[test]
    fn sizes_have_a_unit_or_none() {
        assert_eq!(size("65536"), Ok(65_536));
        assert_eq!(size("4mib"), Ok(4 << 20));
        for wrong in ["", "KiB", "1GiB", "-1", "1.5MiB", "99999999999999999999"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
