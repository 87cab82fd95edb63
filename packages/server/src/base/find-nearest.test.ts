import { expect, test } from 'vitest'
import { findNearest, isLetterAway } from './find-nearest.ts'

test('a word is a letter away where its distance is one', () => {
  const letters = ['', 'a', 'b', 'A', '_']
  const words = letters.flatMap((a) =>
    letters.flatMap((b) => letters.flatMap((c) => ['', 'a', 'b'].map((d) => `${a}${b}${c}${d}`))),
  )
  for (const word of new Set(words))
    for (const other of new Set(words))
      expect([word, other, isLetterAway(word, other)]).toEqual([
        word,
        other,
        findNearest(word, [other]).distance === 1,
      ])
})
