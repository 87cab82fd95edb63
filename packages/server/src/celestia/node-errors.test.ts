import { describe, expect, test } from 'vitest'
import { NodeError, type NodeErrorKind, parseNodeError } from './node-errors.ts'

describe('the error of a node', () => {
  test.each<[NodeErrorKind, string]>([
    ['missing', 'blob: not found'],
    ['pruned', 'requested header (7) is below Tail (120)'],
    ['future', 'header: given height is from the future: networkHeight: 7, requestedHeight: 9'],
    ['future', 'blob: given height exceeds network head.networkHeight:7, requestedHeight:9'],
    ['future', 'header: syncing in progress: localHeadHeight: 7'],
    ['refused', "missing permission to invoke 'blob.Submit' (need 'write')"],
    ['refused', 'not allowed namespace 00 were used to build the blob'],
    ['refused', 'account for signer celestia1abc not found'],
    ['refused', 'state: estimated gas price exceeds max gas price in tx config'],
    ['rejected', 'failed to submit blobs due to insufficient estimated gas price'],
    ['rejected', 'insufficient fees; got: 1utia required: 2utia: insufficient fee'],
    ['rejected', 'spendable balance 0utia is smaller than 2utia: insufficient funds'],
    ['rejected', 'tx too large'],
    ['unknown', 'account sequence mismatch, expected 7, got 6: incorrect account sequence'],
    ['unknown', 'timed out waiting for tx to be included in a block'],
    ['unknown', 'blob: invalid proof'],
    ['unknown', 'context deadline exceeded'],
    ['unknown', ''],
  ])('is %s by its text: %s', (kind, message) => {
    expect(new NodeError({ code: 1, message }).kind).toBe(kind)
  })

  test.each([-32_700, -32_600, -32_601, -32_602])(
    'of JSON-RPC itself (%i) is a refusal',
    (code) => {
      expect(new NodeError({ code, message: 'x' }).kind).toBe('refused')
    },
  )

  test.each([-32_603, -32_000, -32_099])(
    'that a gateway has (%i) tells nothing of the blob but by its text',
    (code) => {
      expect(new NodeError({ code, message: 'Internal error' }).kind).toBe('unknown')
      expect(new NodeError({ code, message: 'blob: not found' }).kind).toBe('missing')
    },
  )

  test('of any form is read, and a long text is cut', () => {
    expect(parseNodeError({})).toMatchObject({ code: 0, kind: 'unknown' })
    expect(parseNodeError('too busy')).toMatchObject({ code: 0, message: 'too busy' })
    expect(parseNodeError({ code: 'x', message: 7 })).toMatchObject({ code: 0 })
    expect(parseNodeError({ code: 1, message: 'x'.repeat(1e6) }).message).toHaveLength(300)
  })
})
