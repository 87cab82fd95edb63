import { getClaim, type RecordedProof, recordedProofs } from '@tollbase/testing/celestia/vectors'
import { describe, expect, test } from 'vitest'
import { decodeBase64, encodeBase64 } from '../bytes.ts'
import {
  type CommitmentProof,
  parseCommitmentProof,
  verifyCommitmentProof,
} from './commitment-proof.ts'
import { deriveNamespace, parityNamespace } from './namespace.ts'

const refused = expect.objectContaining({ name: 'FormatError' })

function verify(recorded: RecordedProof, proof: unknown = recorded.commitment_proof, change = {}) {
  const claim = { ...getClaim(recorded), ...change }
  return verifyCommitmentProof(parseCommitmentProof(proof as Record<string, unknown>), claim)
}

/** Returns the recorded proof that spans the most rows. */
function getLongest(): RecordedProof {
  const [first, ...rest] = recordedProofs
  if (first === undefined) throw new Error('there are proofs')
  const count = (one: RecordedProof) => one.commitment_proof.row_proof.row_roots.length
  return rest.reduce((longest, one) => (count(one) > count(longest) ? one : longest), first)
}

describe('a proof of a commitment', () => {
  test.each(recordedProofs.map((one, at) => [one.of, at, one] as const))(
    'that the official code made of %s (%i) holds',
    (_of, _at, recorded) => {
      expect(() => verify(recorded)).not.toThrow()
    },
  )

  test('with any bit of it turned, or any number of it changed, is refused', () => {
    let [changes, index] = [0, 0]
    for (const [at, recorded] of recordedProofs.entries())
      for (const changed of change(recorded.commitment_proof, at)) {
        // Those of large blobs have ten times as many members, of the same kinds.
        index += 1
        if (at > 11 && index % 8 !== 0) continue
        expect(() => verify(recorded, changed), JSON.stringify(changed).slice(0, 300)).toThrow(
          refused,
        )
        changes += 1
      }
    expect(changes).toBeGreaterThan(500)
  })

  test('is refused for another namespace, commitment, number of shares or data root', () => {
    for (const recorded of recordedProofs) {
      const claim = getClaim(recorded)
      const turned = (bytes: Uint8Array) => bytes.map((byte, at) => (at === 20 ? byte ^ 1 : byte))
      for (const wrong of [
        { namespace: turned(claim.namespace) },
        { namespace: parityNamespace },
        { namespace: claim.namespace.subarray(0, 28) },
        { commitment: turned(claim.commitment) },
        { commitment: new Uint8Array(0) },
        { shares: claim.shares + 1 },
        { shares: claim.shares - 1 },
        { shares: 0 },
        { dataRoot: turned(claim.dataRoot) },
        { dataRoot: new Uint8Array(0) },
      ])
        expect(() => verify(recorded, undefined, wrong)).toThrow(refused)
    }
  })

  test('of one blob is none of another', () => {
    for (const [at, recorded] of recordedProofs.entries()) {
      const other = recordedProofs[(at + 1) % recordedProofs.length] ?? recorded
      expect(() => verify(recorded, other.commitment_proof)).toThrow(refused)
    }
  })

  test('with a row of it for another one, left out, told twice or out of its order is refused', () => {
    const recorded = getLongest()
    const { commitment_proof: proof } = recorded
    const { row_proof: rows, subtree_root_proofs: ranges } = proof
    const turn = <T>(items: readonly T[]) => [...items.slice(1), ...items.slice(0, 1)]
    const twice = <T>(items: readonly T[]) => items.map((_, at) => items[Math.max(0, at - 1)])
    const wrong: object[] = [
      { ...proof, row_proof: { ...rows, row_roots: turn(rows.row_roots) } },
      { ...proof, row_proof: { ...rows, proofs: turn(rows.proofs) } },
      {
        ...proof,
        row_proof: { ...rows, row_roots: turn(rows.row_roots), proofs: turn(rows.proofs) },
      },
      {
        ...proof,
        row_proof: { ...rows, row_roots: twice(rows.row_roots), proofs: twice(rows.proofs) },
      },
      {
        ...proof,
        row_proof: { ...rows, row_roots: rows.row_roots.slice(1), proofs: rows.proofs.slice(1) },
      },
      { ...proof, row_proof: { ...rows, row_roots: [], proofs: [] } },
      { ...proof, subtree_root_proofs: turn(ranges) },
      { ...proof, subtree_root_proofs: twice(ranges) },
      { ...proof, subtree_root_proofs: ranges.slice(1) },
      { ...proof, subtree_root_proofs: [] },
      { ...proof, subtree_roots: [] },
      { ...proof, subtree_roots: turn(proof.subtree_roots) },
      { ...proof, subtree_roots: proof.subtree_roots.slice(1) },
    ]
    for (const one of wrong) expect(() => verify(recorded, one)).toThrow(refused)
  })

  test('with numbers or lists that are too large is refused at once', () => {
    const recorded = getLongest()
    const { commitment_proof: proof } = recorded
    const { row_proof: rows, subtree_root_proofs: ranges } = proof
    const [range, row] = [ranges[0], rows.proofs[0]]
    const many = <T>(one: T, count: number) => Array.from({ length: count }, () => one)
    const wrong: object[] = [
      { ...proof, subtree_roots: many(proof.subtree_roots[0], 257) },
      { ...proof, subtree_roots: many('A', 1e6) },
      { ...proof, subtree_root_proofs: many(range, 513) },
      { ...proof, row_proof: { ...rows, row_roots: many(rows.row_roots[0], 513) } },
      { ...proof, row_proof: { ...rows, proofs: many(row, 513) } },
      { ...proof, row_proof: { ...rows, start_row: 0, end_row: 2 ** 53 } },
      { ...proof, row_proof: { ...rows, start_row: -1 } },
      {
        ...proof,
        row_proof: {
          ...rows,
          proofs: rows.proofs.map((one) => ({ ...one, total: '9007199254740992' })),
        },
      },
      {
        ...proof,
        row_proof: { ...rows, proofs: rows.proofs.map((one) => ({ ...one, total: '4096' })) },
      },
      {
        ...proof,
        row_proof: { ...rows, proofs: rows.proofs.map((one) => ({ ...one, total: '0' })) },
      },
      {
        ...proof,
        row_proof: { ...rows, proofs: rows.proofs.map((one) => ({ ...one, total: 512 })) },
      },
      {
        ...proof,
        row_proof: {
          ...rows,
          proofs: rows.proofs.map((one) => ({ ...one, aunts: many(one.aunts[0], 12) })),
        },
      },
      { ...proof, subtree_root_proofs: ranges.map((one) => ({ ...one, end: 2 ** 31 })) },
      { ...proof, subtree_root_proofs: ranges.map((one) => ({ ...one, end: 1.5 })) },
      { ...proof, subtree_root_proofs: ranges.map((one) => ({ ...one, end: Number.NaN })) },
      {
        ...proof,
        subtree_root_proofs: ranges.map((one) => ({ ...one, nodes: many(one.nodes?.[0], 21) })),
      },
      { ...proof, subtree_root_proofs: ranges.map((one) => ({ ...one, leaf_hash: 'AA==' })) },
      {
        ...proof,
        subtree_root_proofs: ranges.map((one) => ({ ...one, is_max_namespace_ignored: false })),
      },
      { ...proof, subtree_root_proofs: ranges.map(() => null) },
      { ...proof, namespace_version: 1e9 },
      { ...proof, namespace_id: 'A' },
      { ...proof, row_proof: null },
    ]
    for (const one of wrong) expect(() => verify(recorded, one)).toThrow(refused)
  })

  test('for the namespace of padding and parity is refused, though the block has such shares', () => {
    const [recorded] = recordedProofs
    if (recorded === undefined) throw new Error('there are proofs')
    const proof = {
      ...recorded.commitment_proof,
      namespace_id: encodeBase64(parityNamespace.subarray(1)),
    }
    expect(() => verify(recorded, proof)).toThrow(refused)
    expect(() => verify(recorded, proof, { namespace: parityNamespace })).toThrow(refused)
    expect(() => verify(recorded, proof, { namespace: deriveNamespace('shop') })).toThrow(refused)
  })
})

/** Yields the proof with one bit of one of its hashes turned, or one of its numbers changed, at a time. */
function* change(proof: CommitmentProof, seed: number): Generator<unknown> {
  let bit = seed
  const walk = function* (value: unknown, put: (changed: unknown) => unknown): Generator<unknown> {
    if (typeof value === 'object' && value !== null) {
      for (const [name, member] of Object.entries(value)) {
        const rest: Record<string, unknown> | unknown[] = Array.isArray(value)
          ? [...value]
          : { ...value }
        yield* walk(member, (changed) => put(Object.assign(rest, { [name]: changed })))
        Object.assign(rest, { [name]: member })
      }
    } else if (typeof value === 'number') {
      yield put(value + 1)
      if (value > 0) yield put(value - 1)
    } else if (typeof value === 'boolean') yield put(!value)
    else if (/^\d+$/.test(String(value))) yield put(String(Number(value) + 1))
    else {
      const bytes = decodeBase64(String(value))
      bit = (bit * 31 + 7) % (bytes.length * 8)
      yield put(
        encodeBase64(bytes.map((byte, at) => (at === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte))),
      )
    }
  }
  yield* walk(proof, (one) => one)
}
