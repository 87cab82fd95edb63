import { expect, test } from 'vitest'
import { awaitTurn } from './await-turn.ts'

test('one of many pieces of long work has its turn in each round of the event loop, and each piece as often', async () => {
  const rounds: string[][] = [[]]
  let isOver = false
  const round = () => {
    rounds.push([])
    if (!isOver) setImmediate(round)
  }
  setImmediate(round)
  const work = async (name: string) => {
    for (let at = 0; at < 3; at++) {
      await awaitTurn()
      rounds.at(-1)?.push(name)
    }
  }
  await Promise.all(['a', 'b', 'c'].map(work))
  isOver = true
  expect(rounds.every((each) => each.length <= 1)).toBe(true)
  expect(rounds.flat().join('')).toBe('abcabcabc')
})
