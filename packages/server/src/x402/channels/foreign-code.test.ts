import { expect, test } from 'vitest'
import type { Rpc } from '../rpc.ts'
import { collectorAddress, escrowAddress } from './channel.ts'
import { authorizationCollector, channelEscrow } from './contracts.ts'
import { findForeignCode } from './escrow.ts'

function makeNode(codes: Readonly<Record<string, string>>): Rpc {
  return {
    call: async (_method: string, params: readonly unknown[]) => codes[String(params[0])] ?? '0x',
    close: () => undefined,
  } as Rpc
}

test('money goes only into contracts that are known: ours, or those whose hash the operator names', async () => {
  const ours = {
    [escrowAddress]: channelEscrow.code,
    [collectorAddress]: authorizationCollector.code,
  }
  expect(await findForeignCode(makeNode(ours), undefined)).toBeUndefined()
  expect(await findForeignCode(makeNode({}), undefined)).toBe(
    `there is no code of the channel contract ${escrowAddress} and the collector of deposits ${collectorAddress}`,
  )
  const { [collectorAddress]: _, ...half } = ours
  expect(await findForeignCode(makeNode(half), undefined)).toMatch(/no code of the collector/)
  const other = makeNode({ ...ours, [escrowAddress]: '0x6001' })
  const problem = await findForeignCode(other, `0x${'00'.repeat(32)}`)
  expect(problem).toMatch(/has together the hash 0x[0-9a-f]{64}, which is neither/)
  const [, hash] = /hash (0x[0-9a-f]{64})/.exec(problem ?? '') ?? []
  expect(await findForeignCode(other, hash)).toBeUndefined()
})
