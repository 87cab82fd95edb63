import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { multicall3 } from '@tollbase/server/devnet/contracts'
import { decodeHex, encodeQuantity } from '@tollbase/server/x402/hex'
import { joinCalls, multicallAddress } from '@tollbase/server/x402/joint'
import { decodeFunctionResult, encodeFunctionData, type Hex, multicall3Abi } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Chance } from '../simulation/chance.ts'
import { startHeldChain } from './held-chain.ts'

let held: Awaited<ReturnType<typeof startHeldChain>>

beforeAll(async () => {
  held = await startHeldChain(1)
})

afterAll(() => held?.close())

/** The published source of Multicall3, as viem compiled it; creation code, whose run-time part follows its own end. */
function readPublishedCode(): Hex {
  const require = createRequire(import.meta.url)
  const file = join(dirname(require.resolve('viem')), 'constants', 'contracts.js')
  const { multicall3Bytecode } = require(file) as { multicall3Bytecode: string }
  const end = 'f3fe'
  return `0x${multicall3Bytecode.slice(multicall3Bytecode.indexOf(end) + end.length)}`
}

/**
 * Contracts of which calls end in each way. The last one is called once at most: what is left after two of it is enough for
 * the shorter code alone.
 */
const targets: Readonly<Record<string, Hex>> = {
  'returns nothing': '0x00',
  'returns its caller and its data': '0x33600052366000602037602036016000f3',
  'reverts with its data': '0x366000600037366000fd',
  'has no code': '0x',
  'uses up its gas': '0xfe',
}

test('our Multicall3 gives the results of the published one, call by call, and fails where it does', async () => {
  const chance = new Chance('multicall')
  const names = Object.keys(targets)
  const addresses = names.map((_, at): Hex => `0x${String(at + 1).padStart(40, 'c')}`)
  for (const [at, address] of addresses.entries())
    await held.rpc.call('anvil_setCode', [address, Object.values(targets)[at]])
  const published = readPublishedCode()
  const outcomes = new Set<string>()
  for (let n = 0; n < 150; n++) {
    const length = chance.between('calls', 2, 6)
    const burner = chance.happens('one uses up its gas', 400)
      ? chance.between('which', 0, length - 1)
      : -1
    const calls = Array.from({ length }, (_, at) => ({
      to:
        addresses[
          at === burner ? names.length - 1 : chance.between('target', 0, names.length - 2)
        ] ?? '0x',
      data: `0x${chance.bytes('data', chance.between('length', 0, 70)).toString('hex')}` as Hex,
    }))
    const [joint] = joinCalls(calls.map((call, at) => ({ ...call, id: String(at), joins: true })))
    const mayFail = chance.happens('may fail', 800)
    const data = mayFail
      ? joint?.data
      : encodeFunctionData({
          ...{ abi: multicall3Abi, functionName: 'aggregate3' },
          args: [
            calls.map(({ to, data: callData }) => ({ target: to, allowFailure: false, callData })),
          ],
        })
    const ask = async (code: string) => {
      await held.rpc.call('anvil_setCode', [multicallAddress, code])
      // So much that the code of either is no difference to those that need gas.
      const call = { to: multicallAddress, data, gas: encodeQuantity(20_000_000n) }
      const answer = await held.rpc.call('eth_call', [call, 'latest']).catch(() => undefined)
      if (answer === undefined) return 'fails as a whole'
      const { length } = decodeHex(String(answer))
      const named = { abi: multicall3Abi, functionName: 'aggregate3', data: answer as Hex } as const
      return { length, results: decodeFunctionResult(named) }
    }
    const [ours, theirs] = [await ask(multicall3.code), await ask(published)]
    expect(ours, JSON.stringify(calls)).toEqual(theirs)
    outcomes.add(typeof ours === 'string' ? ours : ours.results.map((one) => one.success).join(' '))
  }
  await held.rpc.call('anvil_setCode', [multicallAddress, multicall3.code])
  expect(outcomes.has('fails as a whole')).toBe(true)
  expect(outcomes.size).toBeGreaterThan(10)
})
