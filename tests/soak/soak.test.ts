import { expect, test } from 'vitest'
import { runSoak } from './soak.ts'

const seed = 20_241

test(`twenty seconds of mixed load with kills lose nothing acknowledged and pay nothing twice (seed ${seed})`, async () => {
  const line = (text: string) => console.info(text)
  const { violations, counts } = await runSoak({ minutes: 1 / 3, seed, line })
  expect(violations).toEqual([])
  expect(counts.acknowledged).toBeGreaterThan(0)
  expect(counts.serviceKills + counts.databaseKills + counts.bothKills).toBeGreaterThan(0)
}, 240_000)
