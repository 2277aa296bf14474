//! Speed of making pictures ready: ours beside the reference agent's ladder, Pillow used well and
//! sharp, in one run, alternating, each on one thread.
//!
//! Prints medians, ratios and what was missed of the goals; then peak memory of fresh processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use clap::{Parser, ValueEnum};
use talaria_benches::pictures::{self, Build, Measured, Way, Worker, goals_of};

/// In the order of the report; those that are not kept are made by `benches/make-pictures`.
const PICTURES: &[&str] = &[
    "web1080.png",
    "doc1080.png",
    "desk1080.png",
    "web1440.png",
    "doc1440.png",
    "edit1440.png",
    "doc4k2x.png",
    "doc4k1x.png",
    "desk4k2x.png",
    "photo12.jpg",
    "photo24.jpg",
    "photo16.png",
    "photo.webp",
    "photo_exif6.jpg",
    "photo_cmyk.jpg",
    "tall.png",
];
/// The screenshot whose memory counts, and the most it may take above idle.
const HEAVY: &str = "doc4k2x.png";
const MOST_MEMORY: u64 = 45_000_000;
/// Full encodes per picture.
const MOST_ENCODES: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Clock {
    /// What a user waits: for a quiet machine.
    Wall,
    /// Processor time: for a busy one.
    Cpu,
}

#[derive(Debug, Parser)]
struct Arguments {
    /// Answers requests of a bench on stdin; for the bench itself.
    #[arg(long, hide = true)]
    worker: bool,
    /// This program built with the feature `c-decoders`, as a second one of ours.
    #[arg(long)]
    with_c: Option<PathBuf>,
    /// Runs of each picture by each worker; the median counts.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// The clock that the ratios are made of.
    #[arg(long, value_enum, default_value_t = Clock::Wall)]
    clock: Clock,
    /// Only these pictures, by file name.
    #[arg(long)]
    only: Vec<String>,
    /// Fail when a goal is missed.
    #[arg(long)]
    check: bool,
}

/// Who makes pictures ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Safe,
    C,
    Ladder,
    Well,
    Sharp,
}

impl Who {
    const fn way(self) -> Way {
        match self {
            Self::Safe | Self::C => Way::Ours,
            Self::Ladder => Way::Ladder,
            Self::Well => Way::Well,
            Self::Sharp => Way::Sharp,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Safe => "ours",
            Self::C => "ours, C",
            Self::Ladder => "ladder",
            Self::Well => "Pillow",
            Self::Sharp => "sharp",
        }
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if arguments.worker {
        return pictures::serve();
    }
    let mut everyone = vec![Who::Safe, Who::Ladder, Who::Well, Who::Sharp];
    if arguments.with_c.is_some() {
        everyone.insert(1, Who::C);
    }
    let sources = sources(&arguments.only)?;
    let mut workers = Vec::new();
    for who in &everyone {
        let mut worker = Worker::start(command(*who, &arguments)?)?;
        for source in &sources {
            worker.load(source)?;
        }
        workers.push((*who, worker));
    }

    println!(
        "load average {}",
        std::fs::read_to_string("/proc/loadavg")?.trim()
    );
    let mut missed = Vec::new();
    for source in &sources {
        let runs = measure(&mut workers, source, arguments.rounds)?;
        missed.extend(report(source, &runs, arguments.clock));
    }
    drop(workers);
    missed.extend(memory(&everyone, &arguments)?);
    println!(
        "load average {}",
        std::fs::read_to_string("/proc/loadavg")?.trim()
    );
    for line in &missed {
        println!("missed: {line}");
    }
    ensure!(
        !arguments.check || missed.is_empty(),
        "{} goals missed",
        missed.len()
    );
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources(only: &[String]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for name in PICTURES {
        if !only.is_empty() && !only.iter().any(|only| only == name) {
            continue;
        }
        let places =
            ["tests/data/images", ".tools/pictures"].map(|folder| root().join(folder).join(name));
        match places.into_iter().find(|place| place.exists()) {
            Some(place) => found.push(place),
            None => println!("{name} is missing: benches/make-pictures makes it"),
        }
    }
    ensure!(!found.is_empty(), "no pictures");
    Ok(found)
}

fn command(who: Who, arguments: &Arguments) -> anyhow::Result<Command> {
    Ok(match who {
        Who::Safe => {
            let mut ours = Command::new(std::env::current_exe()?);
            ours.arg("--worker");
            ours
        }
        Who::C => {
            let mut ours = Command::new(
                arguments
                    .with_c
                    .as_ref()
                    .context("a program with C decoders")?,
            );
            ours.arg("--worker");
            ours
        }
        Who::Ladder | Who::Well => {
            let mut pillow = Command::new(root().join(".peers/python/bin/python"));
            pillow.arg(root().join("benches/peers/pillow_worker.py"));
            pillow
        }
        Who::Sharp => {
            let mut sharp = Command::new("node");
            sharp
                .arg(root().join("benches/peers/sharp_worker.cjs"))
                .env("NODE_PATH", root().join(".peers/node/node_modules"))
                // One thread, also below libvips.
                .env("VIPS_CONCURRENCY", "1");
            sharp
        }
    })
}

/// Every worker once a round, in another order each round, after one round that does not count.
fn measure(
    workers: &mut [(Who, Worker)],
    source: &Path,
    rounds: usize,
) -> anyhow::Result<BTreeMap<Who, Vec<Measured>>> {
    let mut runs: BTreeMap<Who, Vec<Measured>> = BTreeMap::new();
    for round in 0..=rounds {
        for turn in order(workers.len(), round) {
            let (who, worker) = &mut workers[turn];
            let measured = worker.run(who.way(), source)?;
            if round > 0 {
                runs.entry(*who).or_default().push(measured);
            }
        }
    }
    Ok(runs)
}

/// A shuffled order that differs from round to round and not from run to run.
fn order(count: usize, round: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut state = 0x9E37_79B9_u64.wrapping_mul(round as u64 + 1);
    for last in (1..count).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        order.swap(last, (state >> 33) as usize % (last + 1));
    }
    order
}

fn median(runs: &[Measured], clock: Clock) -> f64 {
    let mut times: Vec<f64> = runs
        .iter()
        .map(|run| match clock {
            Clock::Wall => run.wall_ms,
            Clock::Cpu => run.cpu_ms,
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Prints one picture and answers the goals it missed.
fn report(source: &Path, runs: &BTreeMap<Who, Vec<Measured>>, clock: Clock) -> Vec<String> {
    let name = source.file_stem().unwrap_or_default().to_string_lossy();
    let mut missed = Vec::new();
    println!(
        "\n{}",
        source.file_name().unwrap_or_default().to_string_lossy()
    );
    for (who, runs) in runs {
        println!(
            "  {:<8} {:>7.1} ms wall {:>7.1} ms cpu {:>8} bytes  {}{}",
            who.name(),
            median(runs, Clock::Wall),
            median(runs, Clock::Cpu),
            runs[0].bytes,
            runs[0].what,
            runs[0]
                .encodes
                .map(|encodes| format!(", {encodes} encodes"))
                .unwrap_or_default(),
        );
    }
    for (ours, build) in [(Who::Safe, Build::Safe), (Who::C, Build::C)] {
        let Some(own) = runs.get(&ours) else { continue };
        let goals = goals_of(&name, build);
        let mut line = format!("  {:<8}", ours.name());
        for (who, goal) in [
            (Who::Ladder, goals.ladder),
            (Who::Well, goals.well),
            (Who::Sharp, goals.sharp),
        ] {
            let ratio = median(&runs[&who], clock) / median(own, clock);
            line += &format!("  {} / it {ratio:.2}", who.name());
            if let Some(goal) = goal {
                line += &format!(" (goal {goal})");
                if ratio < goal {
                    missed.push(format!(
                        "{name}: {} / {} is {ratio:.2}, goal {goal}",
                        who.name(),
                        ours.name()
                    ));
                }
            }
        }
        println!("{line}");
        let encodes = own
            .iter()
            .filter_map(|run| run.encodes)
            .max()
            .unwrap_or_default();
        if encodes > MOST_ENCODES {
            missed.push(format!("{name}: {} takes {encodes} encodes", ours.name()));
        }
    }
    missed
}

/// Peak memory above idle of one picture in a fresh process of each.
fn memory(everyone: &[Who], arguments: &Arguments) -> anyhow::Result<Vec<String>> {
    let source = root().join("tests/data/images").join(HEAVY);
    let mut missed = Vec::new();
    println!("\npeak memory above idle, {HEAVY}, fresh process");
    for who in everyone {
        let mut worker = Worker::start(command(*who, arguments)?)?;
        worker.load(&source)?;
        let idle = worker.forget_peak()?;
        worker.run(who.way(), &source)?;
        let above = worker.peak()?.saturating_sub(idle);
        println!("  {:<8} {:>6.1} MB", who.name(), above as f64 / 1e6);
        if who.way() == Way::Ours && above > MOST_MEMORY {
            missed.push(format!("{}: {above} bytes above idle", who.name()));
        }
    }
    Ok(missed)
}
