import { expect, test } from 'vitest'
import { noLog as log } from '../../base/log.ts'
import { realWorld as world } from '../../base/world.ts'
import { Failures } from '../failures.ts'
import { encodeHexWord, encodeNumberWord } from '../hex.ts'
import { AnswerTooLarge } from '../http-json.ts'
import { makePaymentNetwork } from '../networks.ts'
import { makePaymentsUnderWay } from '../payments-under-way.ts'
import type { Requirement } from '../protocol.ts'
import { type Rpc, toUnreachable } from '../rpc.ts'
import type { JournaledSender } from '../sender.ts'
import { topics } from '../token.ts'
import { findTaken, makeTakenEvidence } from './find-taken.ts'
import { encodeUptoCall, formatPermitNonce, type UptoPayment } from './upto.ts'
import { makeUptoFacilitator } from './upto-facilitator.ts'
import { uptoProxyAddress } from './upto-terms.ts'

const network = makePaymentNetwork({ chainId: 84532, payTo: `0x${'11'.repeat(20)}` })
const transaction = `0x${'03'.repeat(32)}`
const from = `0x${'33'.repeat(20)}`
const payment: UptoPayment = {
  ...{ version: 2, network: network.id, scheme: 'upto', receiptForm: 'base64' },
  payload: {
    ...{ from, to: network.payTo, value: 5n, nonce: formatPermitNonce(9n) },
    ...{ validAfter: 0n, validBefore: 2n ** 40n, signature: `0x${'00'.repeat(65)}` },
  },
  upto: { permitted: 9n, facilitator: `0x${'22'.repeat(20)}` },
}
const requirement: Requirement = {
  ...{ network, amount: 5n, quoteId: 'q', expiresAt: 0, maxTimeoutSeconds: 60 },
}

const makeTransfer = (value: bigint) => ({
  ...{ address: network.asset.address, transactionHash: transaction },
  topics: [topics.transfer, `0x${encodeHexWord(from)}`, `0x${encodeHexWord(network.payTo)}`],
  data: `0x${encodeNumberWord(value)}`,
})

test('a transaction that the journal has lost took a permit only where the block that has it now says so', async () => {
  const found: { status: string; logs: readonly object[] } = { status: '0x0', logs: [] }
  // A node that has the log of a block which another node, asked for the receipt, has replaced.
  const answers: Readonly<Record<string, () => unknown>> = {
    eth_blockNumber: () => '0x9',
    eth_getLogs: () => [makeTransfer(5n)],
    eth_getTransactionByHash: () => ({
      ...{ to: uptoProxyAddress, input: encodeUptoCall(network, payment) },
    }),
    eth_getTransactionReceipt: () => ({
      ...{ transactionHash: transaction, blockNumber: '0x8', ...found },
    }),
  }
  const rpc: Rpc = { call: async (method) => answers[method]?.(), close: () => undefined }
  const facilitator = makeUptoFacilitator({
    ...{ rpc, network, world, log, pollMs: 1, confirmations: 1 },
    // Nothing is sent.
    sender: { address: payment.upto.facilitator } as JournaledSender,
    failures: new Failures({ rpc, world }),
    underWay: makePaymentsUnderWay({ rpc, network, world, pollMs: 1, waitMs: 1 }),
  })
  const pending = { state: 'pending', transaction, reason: 'not_confirmed' }
  expect(await facilitator.findUse(payment, requirement)).toEqual(pending)
  Object.assign(found, { status: '0x1', logs: [makeTransfer(4n)] })
  expect(await facilitator.findUse(payment, requirement)).toEqual(pending)
  Object.assign(found, { logs: [makeTransfer(5n)] })
  const settled = { state: 'settled', transaction, blockNumber: 8n }
  expect(await facilitator.findUse(payment, requirement)).toEqual(settled)
})

test('transfers of nothing, which anybody may make in a payer’s name, cost no look at what they called, and hide no permit', async () => {
  const asked: string[] = []
  const one = { ...makeTransfer(0n), transactionHash: `0x${'04'.repeat(32)}` }
  const call: Rpc['call'] = async (method, [filter]) => {
    asked.push(method)
    if (method === 'eth_blockNumber') return '0x1000'
    if (method === 'eth_getTransactionByHash')
      return { to: uptoProxyAddress, input: encodeUptoCall(network, payment) }
    const { fromBlock, toBlock } = filter as { fromBlock: string; toBlock: string }
    const [first, last] = [Number(fromBlock), Number(toBlock)]
    // More of them than an answer may have.
    if (last - first > 900) throw toUnreachable(new AnswerTooLarge('too large'))
    const isIn = first <= 0xfa0 && last >= 0xfa0
    return [
      ...Array.from({ length: 100 }, () => one),
      makeTransfer(10n),
      ...(isIn ? [makeTransfer(5n)] : []),
    ]
  }
  const evidence = makeTakenEvidence({ call, close: () => undefined })
  for (let round = 0; round < 3; round++)
    expect(await findTaken(evidence, network, payment)).toEqual({ transaction, amount: 5n })
  expect(asked.filter((method) => method === 'eth_getTransactionByHash')).toHaveLength(1)
})
