/** The number of events in a second, on each side of one round. */
export type Round = { readonly ours: number; readonly peer: number }

export type Comparison = {
  readonly rounds: readonly Round[]
  /** The ratio ours / peer, over the rounds. */
  readonly ratio: { readonly min: number; readonly median: number; readonly max: number }
  readonly ours: number
  readonly peer: number
}

/**
 * Runs both sides in turns, the first one alternating (A B, B A, A B), so that other load of the machine falls on
 * both; the result is the median of the rounds' ratios.
 */
export async function interleave(sides: {
  readonly rounds: number
  readonly ours: (round: number) => Promise<number>
  readonly peer: (round: number) => Promise<number>
}): Promise<Comparison> {
  const rounds: Round[] = []
  for (let round = 0; round < sides.rounds; round++) {
    const isOursFirst = round % 2 === 0
    const first = await (isOursFirst ? sides.ours : sides.peer)(round)
    const second = await (isOursFirst ? sides.peer : sides.ours)(round)
    rounds.push(isOursFirst ? { ours: first, peer: second } : { ours: second, peer: first })
  }
  return compare(rounds)
}

function compare(rounds: readonly Round[]): Comparison {
  const ratios = sorted(rounds.map(({ ours, peer }) => ours / peer))
  return {
    rounds,
    ratio: { min: ratios[0] ?? 0, median: middle(ratios), max: ratios.at(-1) ?? 0 },
    ours: middle(sorted(rounds.map(({ ours }) => ours))),
    peer: middle(sorted(rounds.map(({ peer }) => peer))),
  }
}

function sorted(numbers: readonly number[]): number[] {
  return numbers.toSorted((a, b) => a - b)
}

function middle(numbers: readonly number[]): number {
  return numbers[Math.floor(numbers.length / 2)] ?? 0
}
