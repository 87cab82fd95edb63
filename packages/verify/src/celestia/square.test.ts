import { buildSquare } from '@tollbase/testing/celestia/square'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { concat, encodeBase64 } from '../bytes.ts'
import { parseCommitmentProof, verifyCommitmentProof } from './commitment-proof.ts'
import { deriveNamespace } from './namespace.ts'

const sizes = fc.oneof(
  fc.integer({ min: 1, max: 1_000 }),
  fc.integer({ min: 1_000, max: 20_000 }),
  fc.integer({ min: 30_000, max: 80_000 }),
)
const blobs = fc.array(
  fc.record({ app: fc.constantFrom('a', 'b', 'c'), bytes: sizes, fill: fc.nat(255) }),
  { minLength: 1, maxLength: 6 },
)

describe('a square with blobs of any sizes and namespaces', () => {
  test('gives proofs that hold, each for its own blob alone', () => {
    fc.assert(
      fc.property(blobs, (drawn) => {
        const square = buildSquare(
          drawn.map(({ app, bytes, fill }, at) => ({
            namespace: deriveNamespace(app),
            data: concat(Uint8Array.of(at), new Uint8Array(bytes).fill(fill)),
          })),
        )
        const { dataRoot } = square
        expect(square.blobs).toHaveLength(drawn.length)
        for (const blob of square.blobs) {
          const proof = parseCommitmentProof(JSON.parse(JSON.stringify(square.prove(blob))))
          verifyCommitmentProof(proof, { ...blob, dataRoot })
          for (const other of square.blobs)
            if (other !== blob)
              expect(() => verifyCommitmentProof(proof, { ...other, dataRoot })).toThrow()
        }
      }),
      { numRuns: 20 },
    )
  })

  test('gives none for padding, for a row of parity, or for a column', () => {
    const namespace = deriveNamespace('a')
    const square = buildSquare([{ namespace, data: new Uint8Array(3_000).fill(7) }])
    const [blob] = square.blobs
    if (blob === undefined) throw new Error('there is a blob')
    const { dataRoot } = square
    const proof = square.prove(blob)
    expect(() => verifyCommitmentProof(proof, { ...blob, dataRoot })).not.toThrow()
    // The share before the blob is padding of another namespace, the one after it of tails.
    for (const start of [blob.start - 1, blob.start + 1])
      expect(() =>
        verifyCommitmentProof(square.prove({ ...blob, start }), { ...blob, dataRoot }),
      ).toThrow()
    const { row_proof: rows } = proof
    const count = Number(rows.proofs[0]?.total)
    for (const moved of [count / 4, count / 2, (3 * count) / 4]) {
      const proofs = rows.proofs.map((one) => ({
        ...one,
        index: String(Number(one.index ?? 0) + moved),
      }))
      const wrong = {
        ...proof,
        row_proof: {
          ...rows,
          ...{
            proofs,
            start_row: (rows.start_row ?? 0) + moved,
            end_row: (rows.end_row ?? 0) + moved,
          },
        },
      }
      expect(() => verifyCommitmentProof(wrong, { ...blob, dataRoot })).toThrow('rows')
    }
    const parity = { ...proof, namespace_id: encodeBase64(new Uint8Array(28).fill(255)) }
    expect(() => verifyCommitmentProof(parity, { ...blob, dataRoot })).toThrow('namespace')
  })
})
