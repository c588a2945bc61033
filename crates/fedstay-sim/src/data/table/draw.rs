//! Which rows are for testing: drawn by the seed and by what a row holds, not by where it stands.
//!
//! A row has a mark of its contents. The marks, stirred with the seed, put the rows of an owner in an
//! order; a share of them is taken from it, class after class, so that every class has its share as nearly
//! as rows can be counted. Rows, columns and files may come in any order: the draw is the same. Rows that
//! agree in everything are the only ones that their place tells apart.

/// What the draw knows about rows.
pub(super) struct Drawable<'a> {
    /// The mark of every row's contents.
    pub(super) marks: &'a [u64],
    /// The owner of every row, as a number below `owners`.
    pub(super) owner: &'a dyn Fn(usize) -> usize,
    /// The class of every row; 0 where rows have numbers.
    pub(super) class: &'a dyn Fn(usize) -> usize,
    /// Rows with the same are on one side.
    pub(super) together: Option<&'a dyn Fn(usize) -> u64>,
    /// Not drawn: the last rows by this.
    pub(super) time: Option<&'a dyn Fn(usize) -> f64>,
    /// The share that is taken.
    pub(super) share: f64,
    pub(super) seed: u64,
}

/// Rows that are on one side.
struct Bunch {
    owner: usize,
    class: usize,
    order: u64,
    rows: Vec<u32>,
}

impl Drawable<'_> {
    /// Which of these rows are for testing.
    pub(super) fn draw(&self, rows: &[u32]) -> Vec<u32> {
        if let Some(time) = self.time {
            return self.last(rows, time);
        }
        match self.together {
            Some(together) => self.bunches(rows, together),
            None => self.single(rows),
        }
    }

    /// The place of a mark in the order of the draw.
    fn order(&self, mark: u64) -> u64 {
        stir(mark ^ stir(self.seed ^ 0x7e57))
    }

    /// Where the count of an owner begins, from 0 to 1: what is left over by rounding is drawn, too.
    fn start(&self, marks: impl Iterator<Item = u64>) -> f64 {
        let all = marks.fold(0, u64::wrapping_add);
        (stir(all ^ stir(self.seed ^ 0x57a7)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Rows one by one.
    fn single(&self, rows: &[u32]) -> Vec<u32> {
        let key = |row: &u32| {
            let at = *row as usize;
            ((self.owner)(at), (self.class)(at), self.order(self.marks[at]), *row)
        };
        let mut sorted = rows.to_vec();
        sorted.sort_unstable_by_key(key);
        let mut test = Vec::new();
        for own in sorted.chunk_by(|a, b| (self.owner)(*a as usize) == (self.owner)(*b as usize)) {
            let start = self.start(own.iter().map(|row| self.marks[*row as usize]));
            let before = |count: usize| (count as f64 * self.share + start).floor();
            let first = test.len();
            test.extend((0..own.len()).filter(|at| before(at + 1) > before(*at)).map(|at| own[at]));
            if test.len() - first == own.len() {
                test.pop();
            }
        }
        test
    }

    /// Whole bunches.
    fn bunches(&self, rows: &[u32], together: &dyn Fn(usize) -> u64) -> Vec<u32> {
        let mut sorted = rows.to_vec();
        sorted.sort_unstable_by_key(|row| (together(*row as usize), *row));
        let mut bunches: Vec<Bunch> = Vec::new();
        for rows in sorted.chunk_by(|a, b| together(*a as usize) == together(*b as usize)) {
            let most = |of: &dyn Fn(usize) -> usize| {
                commonest(rows.iter().map(|row| of(*row as usize)).collect())
            };
            let (owner, class) = (most(self.owner), most(self.class));
            let order = self.order(together(rows[0] as usize));
            bunches.push(Bunch { owner, class, order, rows: rows.to_vec() });
        }
        bunches.sort_by_key(|bunch| (bunch.owner, bunch.class, bunch.order));
        let mut test = Vec::new();
        for own in bunches.chunk_by(|a, b| a.owner == b.owner) {
            let marks =
                own.iter().flat_map(|bunch| &bunch.rows).map(|row| self.marks[*row as usize]);
            let start = self.start(marks) - 0.5;
            let (mut seen, mut taken, mut last) = (0, 0, 0);
            let first = test.len();
            for bunch in own {
                seen += bunch.rows.len();
                let owed = seen as f64 * self.share + start - taken as f64;
                if self.share > 0.0 && owed >= bunch.rows.len() as f64 / 2.0 {
                    taken += bunch.rows.len();
                    last = bunch.rows.len();
                    test.extend_from_slice(&bunch.rows);
                }
            }
            if taken == seen {
                test.truncate((test.len() - last).max(first));
            }
        }
        test
    }

    /// The last rows of every owner.
    fn last(&self, rows: &[u32], time: &dyn Fn(usize) -> f64) -> Vec<u32> {
        let mut sorted = rows.to_vec();
        sorted.sort_unstable_by(|a, b| {
            let (left, right) = (*a as usize, *b as usize);
            (self.owner)(left)
                .cmp(&(self.owner)(right))
                .then_with(|| time(left).total_cmp(&time(right)))
                .then_with(|| self.order(self.marks[left]).cmp(&self.order(self.marks[right])))
                .then_with(|| a.cmp(b))
        });
        let mut test = Vec::new();
        for own in sorted.chunk_by(|a, b| (self.owner)(*a as usize) == (self.owner)(*b as usize)) {
            let count = ((own.len() as f64 * self.share).round() as usize).min(own.len() - 1);
            test.extend_from_slice(&own[own.len() - count..]);
        }
        test
    }
}

/// The first of those numbers there are most of.
fn commonest(mut numbers: Vec<usize>) -> usize {
    numbers.sort_unstable();
    let mut longest: &[usize] = &[];
    for run in numbers.chunk_by(|a, b| a == b) {
        longest = if run.len() > longest.len() { run } else { longest };
    }
    longest.first().copied().unwrap_or(0)
}

/// A number in which every bit of another has a say (the last step of SplitMix64).
pub(super) fn stir(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The mark of some bytes (FNV-1a), the same on every machine.
pub(super) fn mark(bytes: &[u8]) -> u64 {
    let step = |mark: u64, byte: &u8| (mark ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
