use super::*;

#[test]
fn the_end_pays() {
    let mut corridor = Corridor { length: 3, cell: 1, steps: 0 };
    let mut obs = [0.0];
    let step = corridor.step(&mut Rng::new(1), &[1], &mut obs);
    assert!(step.terminated);
    assert_eq!((step.reward, obs[0]), (1.0, 1.0));
}
