import { limits } from '@tollbase/contract/limits'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'
import { toHeldAccount } from '../../../projections/held-payments.ts'
import { listPostings } from '../../../projections/ledger-entry.ts'
import { deleteHold, findHold, formatReversalHold, insertHold } from '../accounts/holds.ts'
import type { Claim } from '../claims/claim-store.ts'
import {
  endGone,
  keepGone,
  type ReversalPorts,
  writeReversal,
} from '../reversals/write-reversal.ts'
import { makeDepositEntry } from './claim-deposit.ts'
import { releaseHeld } from './release-held.ts'

const network = 'eip155:84532'
const asset = `0x${'a'.repeat(40)}`
const transaction = `0x${'e'.repeat(64)}`

type Chained = { readonly tenants: ReversalPorts['tenants'] }

/** Puts something just before a chain's next entries. */
function putBeforeAppend<T extends Chained>(ports: T, put: () => Promise<unknown>): T {
  const { system } = ports.tenants
  const { chain } = system
  const append = async (...given: Parameters<typeof chain.append>) => {
    await put()
    return chain.append(...given)
  }
  return { ...ports, tenants: { system: { ...system, chain: pass(chain, append) } } }
}

/** Puts something just after them, when the tables have them. */
function putAfterAppend<T extends Chained>(ports: T, put: () => Promise<unknown>): T {
  const { system } = ports.tenants
  const { chain } = system
  const append = async (...given: Parameters<typeof chain.append>) => {
    const appended = await chain.append(...given)
    await chain.whenApplied(chain.head().height)
    await put()
    return appended
  }
  return { ...ports, tenants: { system: { ...system, chain: pass(chain, append) } } }
}

type LogChain = ReversalPorts['tenants']['system']['chain']

function pass(chain: LogChain, append: LogChain['append']): LogChain {
  const passed = {
    append,
    head: () => chain.head(),
    whenApplied: (height: number) => chain.whenApplied(height),
  }
  return passed as unknown as LogChain
}

describe('releaseHeld', () =>
  withService((service) => {
    let wallets = 0

    /** Books payments of 1,000 each by one payer, which are held for the operator's decision. */
    const hold = async (count = 1, of?: string) => {
      wallets += 1
      const payer = of ?? `0x${String(wallets).padStart(40, '0')}`
      const payments = Array.from({ length: count }, (_, at) => {
        const number = String(wallets * 1_000 + at)
        const identity = `${network}/${asset}/${payer}/0x${number.padStart(64, '0')}`
        return { id: `pay_${number.padStart(32, '0')}`, identity, amount: 1_000n }
      })
      const { chain } = service().running.service.tenants.system
      await chain.append(
        payments.map(({ id: paymentId, ...paid }) =>
          makeDepositEntry({
            paymentId,
            ...paid,
            payer,
            network,
            asset,
            transaction,
            isWithheld: true,
          }),
        ),
      )
      await chain.whenApplied(chain.head().height)
      const [first] = payments
      return { payer, claim: { ...first, operation: 'deposit', terms: null } as Claim }
    }
    const readFree = async (payer: string) =>
      (await service().request('GET', `/api/wallets/${payer}`)).body.available
    const getPorts = (): ReversalPorts => service().running.service.payments.ports

    test('what is released twice at once is on its account once', async () => {
      const { payer } = await hold()
      const release = () => releaseHeld(service().running.service, { payer })
      await Promise.all([release(), release(), release()])
      expect(await readFree(payer)).toBe('1000')
    })

    test('a release that is twice in one block counts once', async () => {
      const { payer, claim } = await hold()
      const { id, identity, amount } = claim
      const account = `wallet:${payer}`
      const body = {
        ...{ kind: 'release', payment_id: id, identity, amount: String(amount) },
        postings: listPostings([
          [toHeldAccount(account, id), -amount],
          [account, amount],
        ]),
      }
      const entry = { header: { type: 'ledger' }, body: JSON.stringify(body) }
      await service().running.service.tenants.system.chain.append([entry, entry])
      expect(await readFree(payer)).toBe('1000')
    })

    test('a release has a most, and says that there is more', async () => {
      const { payer } = await hold(limits.heldReleasedMax + 1)
      const release = () => releaseHeld(service().running.service, { payer })
      const first = await release()
      expect(first.payments).toHaveLength(limits.heldReleasedMax)
      expect(first.next).toBe(first.payments.at(-1)?.payment_id)
      expect(await release()).toMatchObject({ payments: [{}], next: null })
      expect(await readFree(payer)).toBe(String(1_000 * (limits.heldReleasedMax + 1)))
    })

    test('P12: what its chain does not have buys nothing once it is released, until it is back', async () => {
      const { payer, claim } = await hold()
      const { id: paymentId } = claim
      await keepGone(getPorts(), claim)
      const released = await releaseHeld(service().running.service, { paymentId })
      expect(released.payments).toHaveLength(1)
      expect(await readFree(payer)).toBe('0')
      await endGone(getPorts(), paymentId, { other: null })
      expect(await readFree(payer)).toBe('1000')
    })

    /** The moments of the watch's note in which the operator's release may come. */
    const moments = {
      'before its money is looked for': (ports, release) => ({
        ...ports,
        database: {
          ...ports.database,
          transaction: async (work) => {
            await release()
            return ports.database.transaction(work)
          },
        },
      }),
      'before it is committed': (ports, release) => ({
        ...ports,
        database: {
          ...ports.database,
          transaction: (work) =>
            ports.database.transaction(async (tx) => {
              const done = await work(tx)
              await release()
              return done
            }),
        },
      }),
    } satisfies Record<
      string,
      (ports: ReversalPorts, release: () => Promise<unknown>) => ReversalPorts
    >

    test.each(Object.entries(moments))(
      'P12: what is released while it is first noted that it is not there, %s, buys nothing',
      async (_, put) => {
        const { payer, claim } = await hold()
        const release = () => releaseHeld(service().running.service, { paymentId: claim.id })
        const { held, note } = await keepGone(put(getPorts(), release), claim)
        expect(held).toBe(1_000n)
        expect(await readFree(payer)).toBe('0')
        await endGone(getPorts(), claim.id, { other: null, note })
        expect(await readFree(payer)).toBe('1000')
      },
    )

    test('P12: what is first noted as not there while it is released buys nothing', async () => {
      const { payer, claim } = await hold()
      const { service: running } = service().running
      const late = putBeforeAppend(running, () => keepGone(getPorts(), claim))
      await releaseHeld(late, { paymentId: claim.id })
      expect(await readFree(payer)).toBe('0')
      expect((await keepGone(getPorts(), claim)).held).toBe(1_000n)
      expect(await writeReversal(getPorts(), claim, 'gone')).toBe(0n)
      expect(await readFree(payer)).toBe('0')
    })

    test('P12: of money that is held for the operator, and by a crash for its purchase too, no more is held than there was', async () => {
      const { payer, claim } = await hold()
      const { database } = getPorts()
      const account = `wallet:${payer}`
      await insertHold(database, { id: claim.id, account, amount: claim.amount })
      expect((await keepGone(getPorts(), claim)).held).toBe(0n)
      expect(await findHold(database, formatReversalHold(claim.id))).toBe(claim.amount)
      await deleteHold(database, claim.id)
      expect((await keepGone(getPorts(), claim)).held).toBe(claim.amount)
      expect(await findHold(database, formatReversalHold(claim.id))).toBe(claim.amount)
    })

    test('P12: held money that is not there takes nothing of what else its payer has, also not while it is reversed', async () => {
      const { payer, claim } = await hold()
      const other = await hold(1, payer)
      await releaseHeld(service().running.service, { paymentId: other.claim.id })
      await keepGone(getPorts(), claim)
      expect(await readFree(payer)).toBe('1000')
      const seen: string[] = []
      const slow = putAfterAppend(getPorts(), async () => void seen.push(await readFree(payer)))
      expect(await writeReversal(slow, claim, 'gone')).toBe(0n)
      expect([...seen, await readFree(payer)]).toEqual(['1000', '1000'])
    })

    test('P12: of what is first noted while another payment of its account is reversed, all that is there is held', async () => {
      const { payer, claim } = await hold()
      const other = await hold(1, payer)
      await releaseHeld(service().running.service, { payer })
      await keepGone(getPorts(), claim)
      const slow = putAfterAppend(getPorts(), () => keepGone(getPorts(), other.claim))
      expect(await writeReversal(slow, claim, 'gone')).toBe(0n)
      expect(await readFree(payer)).toBe('0')
    })

    test('P12: what is released while it is reversed is taken back from its account by the next round, and from nowhere twice', async () => {
      const { payer, claim } = await hold()
      const ports = getPorts()
      /** The operator's release is there just before the reversal. */
      const late = putBeforeAppend(ports, () =>
        releaseHeld(service().running.service, { paymentId: claim.id }),
      )
      const lost = await writeReversal(late, claim, 'gone')
      expect(lost).toBeUndefined()
      expect(await readFree(payer)).toBe('1000')
      expect(await writeReversal(ports, claim, 'gone')).toBe(0n)
      expect(await readFree(payer)).toBe('0')
    })
  }))
