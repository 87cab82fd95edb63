import type { Mutant } from './mutant.ts'

/** Bugs of a chain, its producer and its applier. */
export const logMutants: readonly Mutant[] = [
  {
    name: 'acknowledged-before-commit',
    scene: 'log',
    file: 'chain/committer.ts',
    find: 'await this.#commit(block)\n        this.#committed(block, batch)',
    put: 'this.#committed(block, batch)\n        await this.#commit(block)',
  },
  {
    name: 'acknowledged-and-left-out',
    scene: 'log',
    from: 13,
    file: 'chain/committer.ts',
    find: 'buildBlock(batch,',
    put: 'buildBlock(batch.length > 1 ? batch.slice(1) : batch,',
  },
  {
    name: 'groups-out-of-order',
    scene: 'log',
    from: 13,
    file: 'chain/build-block.ts',
    find: 'const groups = batch.map(({ group }) => group)',
    put: 'const groups = batch.map(({ group }) => group).reverse()',
  },
  {
    name: 'unknown-commit-has-failed',
    scene: 'log',
    from: 4,
    file: 'chain/committer.ts',
    find: 'if (!isUniqueViolation(error) && !isOfBeside(block, error)) throw error\n      await',
    put: 'throw error\n      await',
  },
  {
    name: 'applier-skips-a-block',
    scene: 'log',
    file: 'chain/applier-loop.ts',
    find: 'applier.apply(tx, blocks, step)',
    put: 'applier.apply(tx, blocks.length > 1 ? blocks.slice(1) : blocks, step)',
  },
  {
    name: 'applied-twice',
    scene: 'log',
    file: 'chain/block-store.ts',
    find: 'WHERE id = 1 AND height =',
    put: 'WHERE id = 1 AND height <> -1 -',
  },
  {
    name: 'applied-before-it-is',
    scene: 'log',
    file: 'chain/applier-loop.ts',
    find: 'if (height <= this.#watermark.height) return Promise.resolve()',
    put: 'if (height <= this.#target) return Promise.resolve()',
  },
  {
    name: 'watermark-apart-from-its-tables',
    scene: 'log',
    file: 'chain/block-store.ts',
    find: 'const changed = await tx.execute(',
    put: 'const changed = await this.#database.execute(',
  },
]
