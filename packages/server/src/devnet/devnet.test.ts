import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { noLog as log } from '../base/log.ts'
import { realWorld as world } from '../base/world.ts'
import { readBalance } from '../x402/authorization-use.ts'
import { readGenesisHash, readHead, simulate } from '../x402/evm-chain.ts'
import { encodeQuantity } from '../x402/hex.ts'
import { openRpc } from '../x402/rpc.ts'
import { findProcess, stopProcess } from './anvil.ts'
import { startDevnet } from './devnet.ts'

const folders: string[] = []

afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollbase-devnet-'))
  folders.push(folder)
  return folder
}

const holder = `0x${'ab'.repeat(20)}`

test('test dollars come from the faucet and from nobody else', async () => {
  const devnet = await startDevnet({ dataDir: newFolder(), world, log })
  const rpc = openRpc({ url: devnet.rpcUrl, world })
  try {
    const given = await Promise.all([1n, 2n, 3n].map((amount) => devnet.faucet(holder, amount)))
    expect(new Set(given.map((each) => each.tx_hash)).size).toBe(3)
    expect(await readBalance(rpc, devnet.network, holder)).toBe(6n)
    const data = `0x40c10f19${holder.slice(2).padStart(64, '0')}${'1'.padStart(64, '0')}`
    expect(await simulate(rpc, { from: holder, to: devnet.token, data })).toMatchObject({
      ok: false,
      reason: expect.stringMatching(/not a minter/),
    })
  } finally {
    rpc.close()
    await devnet.stop()
  }
})

describe('the chain of a data folder', () => {
  test('the chain is the same after every orderly stop: money, blocks, genesis, keys', async () => {
    const dataDir = newFolder()
    let first: Awaited<ReturnType<typeof startDevnet>> | undefined
    for (let run = 1; run <= 4; run++) {
      const devnet = await startDevnet({ dataDir, world, log })
      first ??= devnet
      expect(devnet.genesisHash).toBe(first.genesisHash)
      expect(devnet.network.payTo).toBe(first.network.payTo)
      expect(devnet.keys).toEqual(first.keys)
      expect((await devnet.faucet(holder, 5n)).balance).toBe(String(run * 5))
      await devnet.stop()
      expect(findProcess(devnet.pid)).toBeUndefined()
    }
    const state = JSON.parse(readFileSync(join(dataDir, 'devnet/state.json'), 'utf8'))
    expect(state.blocks).toHaveLength(5)
  })

  test('the chain outlives a crash of the service, and the next start takes the same process over', async () => {
    const dataDir = newFolder()
    const crashed = await startDevnet({ dataDir, world, log })
    await crashed.faucet(holder, 5n)
    await crashed.detach()
    const devnet = await startDevnet({ dataDir, world, log })
    expect(devnet.pid).toBe(crashed.pid)
    expect((await devnet.faucet(holder, 5n)).balance).toBe('10')
    await devnet.stop()
  })

  test('the chain comes back from its last saved state when it is killed itself', async () => {
    const dataDir = newFolder()
    const killed = await startDevnet({ dataDir, world, log })
    await killed.faucet(holder, 5n)
    const file = join(dataDir, 'devnet/state.json')
    const empty = statSync(file).size
    while (statSync(file).size === empty) await world.sleep(50)
    process.kill(killed.pid, 'SIGKILL')
    while (findProcess(killed.pid) !== undefined) await world.sleep(5)
    await killed.detach()
    const devnet = await startDevnet({ dataDir, world, log })
    expect(devnet.genesisHash).toBe(killed.genesisHash)
    expect((await devnet.faucet(holder, 5n)).balance).toBe('10')
    await devnet.stop()
  })

  test('the chain does not silently begin anew when its state is lost', async () => {
    const dataDir = newFolder()
    const devnet = await startDevnet({ dataDir, world, log })
    await devnet.stop()
    rmSync(join(dataDir, 'devnet/state.json'))
    await expect(startDevnet({ dataDir, world, log })).rejects.toThrow(
      /state of the devnet is gone/,
    )
  })

  test('a chain of another folder, and a process that took its place, are left alone', async () => {
    const [one, two] = await Promise.all(
      [newFolder(), newFolder()].map((dataDir) => startDevnet({ dataDir, world, log })),
    )
    expect(one?.genesisHash).not.toBe(two?.genesisHash)
    await stopProcess({ pid: process.pid, started: 'another time' }, world)
    await Promise.all([one?.stop(), two?.stop()])
  })
})

test('all files lie inside the folder, and the keys are for their owner only', async () => {
  const dataDir = newFolder()
  const devnet = await startDevnet({ dataDir, world, log })
  await devnet.stop()
  expect(readdirSync(dataDir)).toEqual(['devnet'])
  const names = readdirSync(join(dataDir, 'devnet')).toSorted()
  expect(names).toEqual(['anvil.json', 'chain.json', 'keys.json', 'state.json'])
  expect(statSync(join(dataDir, 'devnet/keys.json')).mode & 0o777).toBe(0o600)
})

test('block times follow the clock, and an idle chain makes a block each minute, and no more', async () => {
  let skippedMs = 0
  const skipping = { ...world, now: () => world.now() + skippedMs }
  const devnet = await startDevnet({ dataDir: newFolder(), world: skipping, log })
  const rpc = openRpc({ url: devnet.rpcUrl, world })
  try {
    expect(await readGenesisHash(rpc)).toBe(devnet.genesisHash)
    await devnet.faucet(holder, 5n)
    const head = await readHead(rpc)
    await world.sleep(300)
    expect(await readHead(rpc)).toBe(head)
    const block = await rpc.call('eth_getBlockByNumber', [encodeQuantity(head), false])
    const time = Number((block as { timestamp: string }).timestamp)
    expect(Math.abs(time - world.now() / 1000)).toBeLessThan(3)
    skippedMs = 60_000
    while ((await readHead(rpc)) === head) await world.sleep(10)
    await world.sleep(300)
    expect(await readHead(rpc)).toBe(head + 1n)
  } finally {
    rpc.close()
    await devnet.stop()
  }
})
