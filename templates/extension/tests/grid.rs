//! The shapes of launches: a grid is never empty, never too large, and has a thread for each element where it can.

#[path = "../src/grid.rs"]
mod grid;

#[test]
fn a_grid_covers_small_arrays_and_is_bounded_for_large_ones() {
    for (items, expected) in [
        (0, 1),
        (1, 1),
        (256, 1),
        (257, 2),
        (1 << 20, 4096),
        (usize::MAX, 4096),
    ] {
        assert_eq!(grid::blocks(items, grid::THREADS), expected, "{items}");
    }
}

#[test]
fn the_reduction_halves_its_threads_to_one() {
    assert!(grid::THREADS.is_power_of_two());
    assert_eq!(grid::doubles_bytes(), 8 * grid::THREADS);
}
