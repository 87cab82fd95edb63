import { expect, test } from 'vitest'
import {
  findMined,
  findTransactionReceipt,
  readBlockHash,
  readBlockTime,
  readFinalHeight,
  readHead,
  simulate,
} from './evm-chain.ts'
import { AnswerTooLarge } from './http-json.ts'
import { type Rpc, RpcError, toUnreachable } from './rpc.ts'

const hash = `0x${'ab'.repeat(32)}`
const unreachable = { code: 'PAYMENT_NETWORK_UNREACHABLE' }

function makeNode(answer: (method: string) => unknown): Rpc {
  return { call: async (method) => answer(method), close: () => undefined }
}

test.each(['0x20000000000000', `0x1${'0'.repeat(50)}`])(
  'a height, a time or a use of gas of %s is no answer: tables and JSON numbers hold none so high',
  async (high) => {
    const place = { transactionHash: hash, blockHash: hash, status: '0x1', logs: [] }
    const receipt = { ...place, blockNumber: '0x1', gasUsed: '0x1' }
    const node = makeNode((method) => (method === 'eth_blockNumber' ? high : { timestamp: high }))
    await expect(readHead(node)).rejects.toMatchObject(unreachable)
    await expect(readBlockTime(node, 1n)).rejects.toMatchObject(unreachable)
    for (const wrong of [{ blockNumber: high }, { gasUsed: high }]) {
      const lying = makeNode(() => ({ ...receipt, ...wrong }))
      await expect(findMined(lying, hash)).rejects.toMatchObject(unreachable)
      await expect(findTransactionReceipt(lying, hash)).rejects.toMatchObject(unreachable)
    }
    expect(
      await findMined(
        makeNode(() => receipt),
        hash,
      ),
    ).toMatchObject({ blockNumber: 1n })
  },
)

test('code of a stranger that reverts with very much data is a refusal in few words', async () => {
  const call = { to: `0x${'11'.repeat(20)}`, data: '0x' }
  const tooLarge = makeNode(() => {
    throw toUnreachable(new AnswerTooLarge('an answer of more than 8388608 bytes'))
  })
  const reason = expect.stringMatching(/very much data/)
  expect(await simulate(tooLarge, call)).toEqual({ ok: false, reason })
  const text = Buffer.from('x'.repeat(1_000_000)).toString('hex')
  const data = `0x08c379a0${'20'.padStart(64, '0')}${'0f4240'.padStart(64, '0')}${text}`
  const long = makeNode(() => {
    throw new RpcError({ code: 3, message: 'execution reverted', data })
  })
  expect(await simulate(long, call)).toEqual({ ok: false, reason: 'execution reverted' })
})

const makeFailing = (code: number, message: string) =>
  makeNode(() => {
    throw new RpcError({ code, message })
  })

test('a block for which a node answers with an error is not said to be gone', async () => {
  const late = makeFailing(-32_000, 'cannot query unfinalized data')
  await expect(readBlockHash(late, 7n)).rejects.toMatchObject(unreachable)
  const away = makeNode(() => {
    throw toUnreachable(new Error('the connection was reset'))
  })
  await expect(readBlockHash(away, 7n)).rejects.toMatchObject(unreachable)
})

test.each([
  [-32_601, 'the method eth_getBlockByNumber does not exist'],
  [-32_602, 'invalid argument 0: hex string without 0x prefix'],
  [-39_001, 'Unknown block'],
  [-32_000, 'finalized block not found'],
  [-32_000, 'invalid block tag'],
  [-32_603, 'strconv.ParseUint: parsing "finalized": invalid syntax'],
])(
  'a node that answers %i, %s, knows no final blocks, so 256 more make one final',
  async (code, message) => {
    expect(await readFinalHeight(makeFailing(code, message), 1_000n)).toBe(744n)
  },
)

test.each([
  [-32_005, 'limit exceeded'],
  [-32_602, 'finalized: request limit reached'],
  [429, 'Too Many Requests'],
  [-32_000, 'too busy'],
  [-32_603, 'Internal error'],
  [-32_000, 'request timed out: eth_getBlockByNumber("finalized")'],
])('a node that answers %i, %s, says nothing of which blocks are final', async (code, message) => {
  await expect(readFinalHeight(makeFailing(code, message), 1_000n)).rejects.toMatchObject(
    unreachable,
  )
})
