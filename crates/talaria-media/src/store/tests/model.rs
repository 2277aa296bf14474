//! Sequences of actions against a model that is simple enough to be believed.

use proptest::prelude::*;

use crate::{OpenArtifact, SweepReport};

use super::*;

const MAX_BYTES: usize = 1000;
const MAX_FILES: usize = 8;
const TTL: u64 = 100;
const GRACE: u64 = 10;

#[derive(Clone, Debug)]
enum Action {
    Save { size: usize, staged: bool },
    Read(usize),
    Hold(usize),
    LetGo(usize),
    Delete(usize),
    Pass(u64),
    Sweep,
    Restart,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => (0_usize..400, any::<bool>()).prop_map(|(size, staged)| Action::Save { size, staged }),
        1 => (900_usize..1100, any::<bool>())
            .prop_map(|(size, staged)| Action::Save { size, staged }),
        3 => (0_usize..16).prop_map(Action::Read),
        2 => (0_usize..16).prop_map(Action::Hold),
        2 => (0_usize..16).prop_map(Action::LetGo),
        1 => (0_usize..16).prop_map(Action::Delete),
        4 => (0_u64..60).prop_map(Action::Pass),
        3 => Just(Action::Sweep),
        1 => Just(Action::Restart),
    ]
}

/// What the model knows of a file. Times are seconds since the start.
#[derive(Clone, Debug)]
struct Known {
    id: ArtifactId,
    bytes: Vec<u8>,
    created: u64,
    used: u64,
    held: usize,
}

#[derive(Default)]
struct Model {
    files: Vec<Known>,
    gone: Vec<ArtifactId>,
    now: u64,
}

impl Model {
    fn total(&self) -> usize {
        self.files.iter().map(|file| file.bytes.len()).sum()
    }

    fn removable(&self, file: &Known) -> bool {
        file.held == 0 && self.now - file.created >= GRACE
    }

    /// Ids that go, least recently used first, until that much more fits; and whether it does.
    fn excess(&self, bytes: usize, files: usize) -> (Vec<ArtifactId>, bool) {
        let mut total = self.total() + bytes;
        let mut count = self.files.len() + files;
        let mut order: Vec<_> = self.files.iter().collect();
        order.sort_by_key(|file| file.used);
        let mut going = Vec::new();
        for file in order {
            if total <= MAX_BYTES && count <= MAX_FILES {
                break;
            }
            if self.removable(file) {
                total -= file.bytes.len();
                count -= 1;
                going.push(file.id.clone());
            }
        }
        (going, total <= MAX_BYTES && count <= MAX_FILES)
    }

    fn remove(&mut self, going: &[ArtifactId]) -> usize {
        let before = self.total();
        self.files.retain(|file| !going.contains(&file.id));
        self.gone.extend_from_slice(going);
        before - self.total()
    }
}

struct Run {
    bench: Bench,
    store: MediaStore,
    model: Model,
    held: Vec<OpenArtifact>,
}

impl Run {
    fn new() -> Self {
        let mut bench = Bench::new();
        bench.bounds.max_bytes = u64::try_from(MAX_BYTES).unwrap();
        bench.bounds.max_files = MAX_FILES;
        bench.bounds.ttl = Duration::from_secs(TTL);
        bench.bounds.grace = Duration::from_secs(GRACE);
        let store = bench.open();
        Self {
            bench,
            store,
            model: Model::default(),
            held: Vec::new(),
        }
    }

    fn pass(&mut self, seconds: u64) {
        self.bench.pass(Duration::from_secs(seconds));
        self.model.now += seconds;
    }

    fn pick(&self, index: usize) -> Option<usize> {
        (!self.model.files.is_empty()).then(|| index % self.model.files.len())
    }

    fn take(&mut self, action: &Action) {
        // No two events at one moment: the order of use is then never a tie.
        self.pass(1);
        match action {
            Action::Save { size, staged } => self.save(*size, *staged),
            Action::Read(index) => drop(self.read(*index)),
            Action::Hold(index) => {
                let open = self.read(*index);
                self.held.extend(open);
                self.count_holds();
            }
            Action::LetGo(index) => {
                if !self.held.is_empty() {
                    self.held.swap_remove(index % self.held.len());
                }
                self.count_holds();
            }
            Action::Delete(index) => {
                if let Some(index) = self.pick(*index) {
                    let id = self.model.files[index].id.clone();
                    self.store.delete(&id).unwrap();
                    self.model.remove(&[id]);
                }
            }
            Action::Pass(seconds) => self.pass(*seconds),
            Action::Sweep => self.sweep(),
            Action::Restart => {
                self.held.clear();
                self.count_holds();
                self.store = self.bench.open();
            }
        }
        self.check();
    }

    fn save(&mut self, size: usize, as_staged: bool) {
        let fill = u8::try_from(self.model.now % 251).unwrap();
        let bytes = vec![fill; size];
        let mut request = document("a.pdf", &bytes);
        if as_staged {
            request.body = FileBody::Staged(staged(&self.store, &bytes));
        }
        let (going, fits) = self.model.excess(size, 1);
        let saved = self.store.save(request, None);
        assert_eq!(saved.is_ok(), fits, "{saved:?}");
        if let Ok(artifact) = saved {
            self.model.remove(&going);
            let now = self.model.now;
            let id = artifact.id;
            self.model.files.push(Known {
                id,
                bytes,
                created: now,
                used: now,
                held: 0,
            });
        }
    }

    fn read(&mut self, index: usize) -> Option<OpenArtifact> {
        let index = self.pick(index)?;
        let now = self.model.now;
        let file = &mut self.model.files[index];
        file.used = now;
        Some(self.store.read(&file.id).unwrap())
    }

    fn count_holds(&mut self) {
        for file in &mut self.model.files {
            file.held = self
                .held
                .iter()
                .filter(|open| open.record.artifact.id == file.id)
                .count();
        }
    }

    fn sweep(&mut self) {
        let model = &mut self.model;
        let expired: Vec<_> = model
            .files
            .iter()
            .filter(|file| model.now - file.created > TTL && model.removable(file))
            .map(|file| file.id.clone())
            .collect();
        let mut bytes = model.remove(&expired);
        let (evicted, _) = model.excess(0, 0);
        bytes += model.remove(&evicted);
        let expected = SweepReport {
            expired: expired.len(),
            evicted: evicted.len(),
            bytes: u64::try_from(bytes).unwrap(),
        };
        assert_eq!(self.store.sweep(self.bench.now()), expected);
    }

    /// The invariants: what the model has is there whole, nothing else is, nothing is left over.
    fn check(&self) {
        for file in &self.model.files {
            let record = self.store.find(&file.id).unwrap();
            assert_eq!(fs::read(record.artifact.path).unwrap(), file.bytes);
        }
        for id in &self.model.gone {
            assert_eq!(code(self.store.find(id)), ErrorCode::UnknownArtifact);
        }
        assert_eq!(
            self.bench.listing("documents").len(),
            self.model.files.len()
        );
        assert_eq!(self.bench.listing("staging"), Vec::<String>::new());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_sequence_of_actions_ends_as_the_model_says(
        actions in prop::collection::vec(action(), 1..60),
    ) {
        let mut run = Run::new();
        for action in &actions {
            run.take(action);
        }
    }
}
