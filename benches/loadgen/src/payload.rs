//! What requests carry.
//!
//! Every request has a tag of its own (connection and sequence number mixed), and its bytes follow from the tag and
//! their offset. A reply that belongs to another connection, to an earlier request, or that lost or doubled a byte
//! thus differs from what is expected, at the price of filling and comparing a few words.

/// Odd constant (2^64 over the golden ratio): multiples of it differ in all bytes.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The tag of request number `sequence` of connection `connection`.
pub fn tag(connection: usize, sequence: u64) -> u64 {
    ((connection as u64) << 40 ^ sequence).wrapping_mul(STEP)
}

/// Writes bytes `offset..offset + out.len()` of the request with this tag.
pub fn fill(out: &mut [u8], tag: u64, offset: usize) {
    let word = |index: usize| tag.wrapping_add((index as u64).wrapping_mul(STEP)).to_le_bytes();
    let head = (offset.next_multiple_of(8) - offset).min(out.len());
    let (head, body) = out.split_at_mut(head);
    if !head.is_empty() {
        let skip = offset % 8;
        head.copy_from_slice(&word(offset / 8)[skip..skip + head.len()]);
    }
    let first = offset.div_ceil(8);
    let mut chunks = body.chunks_exact_mut(8);
    let mut index = first;
    for chunk in &mut chunks {
        chunk.copy_from_slice(&word(index));
        index += 1;
    }
    let tail = chunks.into_remainder();
    let length = tail.len();
    tail.copy_from_slice(&word(index)[..length]);
}

/// Whether `received` is bytes `offset..` of the request with this tag; `scratch` is at least as long.
pub fn matches(received: &[u8], tag: u64, offset: usize, scratch: &mut [u8]) -> bool {
    let expected = &mut scratch[..received.len()];
    fill(expected, tag, offset);
    expected == received
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_cut_gives_the_same_bytes() {
        let mut whole = [0; 67];
        fill(&mut whole, tag(3, 9), 0);
        for start in 0..whole.len() {
            for end in start..=whole.len() {
                let mut part = vec![0; end - start];
                fill(&mut part, tag(3, 9), start);
                assert_eq!(part, whole[start..end], "{start}..{end}");
            }
        }
    }

    #[test]
    fn a_foreign_or_stale_reply_is_noticed() {
        let mut sent = [0; 8];
        let mut scratch = [0; 8];
        fill(&mut sent, tag(1, 1), 0);
        assert!(matches(&sent, tag(1, 1), 0, &mut scratch));
        assert!(!matches(&sent, tag(2, 1), 0, &mut scratch));
        assert!(!matches(&sent, tag(1, 2), 0, &mut scratch));
    }
}
