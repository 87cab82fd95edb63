import type { AppliedBlock, AppliedEntry, Applier } from '../chain/applier.ts'
import type { Projection } from './projection.ts'

/** Makes a chain's applier: entries go, in order and in runs as long as possible, to the projection of their type. */
export function makeApplier(schema: string, projections: readonly Projection[]): Applier {
  const byType = new Map(
    projections.flatMap((one) => one.types.map((type) => [type, one] as const)),
  )
  return {
    apply: async (tx, blocks, step) => {
      const behind = projections.filter((one) => one.catchUpAt?.() !== undefined)
      const runs =
        blocks.length > 0
          ? groupRuns(blocks, byType)
          : behind.map((projection) => ({ projection, entries: [] }))
      const done: (() => void)[] = []
      for (const { projection, entries } of runs)
        done.push(await projection.apply(tx, schema, { entries, step }))
      return () => {
        for (const commit of done) commit()
      }
    },
    catchUpAt: () => {
      const times = projections.flatMap((one) => one.catchUpAt?.() ?? [])
      return times.length === 0 ? undefined : Math.min(...times)
    },
  }
}

function groupRuns(blocks: readonly AppliedBlock[], byType: ReadonlyMap<string, Projection>) {
  const runs: { projection: Projection; entries: AppliedEntry[] }[] = []
  for (const block of blocks) {
    for (const entry of block.entries) {
      const projection = byType.get(entry.header.type)
      // An entry of a type without tables (a chain's head in the system chain) needs none.
      if (projection === undefined) continue
      const last = runs.at(-1)
      if (last?.projection === projection) last.entries.push(entry)
      else runs.push({ projection, entries: [entry] })
    }
  }
  return runs
}
