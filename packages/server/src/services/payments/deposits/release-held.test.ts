import { limits } from '@tollbase/contract/limits'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'
import { toHeldAccount } from '../../../projections/held-payments.ts'
import { listPostings } from '../../../projections/ledger-entry.ts'
import type { Claim } from '../claims/claim-store.ts'
import { setTakenBack } from '../reversals/taken-back.ts'
import { endGone, type ReversalPorts, writeReversal } from '../reversals/write-reversal.ts'
import { makeDepositEntry } from './claim-deposit.ts'
import { releaseHeld } from './release-held.ts'

const network = 'eip155:84532'
const asset = `0x${'a'.repeat(40)}`
const transaction = `0x${'e'.repeat(64)}`

describe('releaseHeld', () =>
  withService((service) => {
    let wallets = 0

    /** Books payments of 1,000 each by one payer, which are held for the operator's decision. */
    const hold = async (count = 1) => {
      wallets += 1
      const payer = `0x${String(wallets).padStart(40, '0')}`
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
      await setTakenBack(service().database, paymentId, null)
      const released = await releaseHeld(service().running.service, { paymentId })
      expect(released.payments).toHaveLength(1)
      expect(await readFree(payer)).toBe('0')
      await endGone(getPorts(), paymentId, { other: null })
      expect(await readFree(payer)).toBe('1000')
    })

    test('P12: what is released while it is reversed is taken back from its account by the next round, and from nowhere twice', async () => {
      const { payer, claim } = await hold()
      const ports = getPorts()
      const { system } = ports.tenants
      const { chain } = system
      /** The operator's release is there just before the reversal. */
      const released = {
        head: () => chain.head(),
        whenApplied: (height: number) => chain.whenApplied(height),
        append: async (...given: Parameters<typeof chain.append>) => {
          await releaseHeld(service().running.service, { paymentId: claim.id })
          return chain.append(...given)
        },
      }
      const late = { ...ports, tenants: { system: { ...system, chain: released } } }
      const lost = await writeReversal(late as unknown as ReversalPorts, claim, 'gone')
      expect(lost).toBeUndefined()
      expect(await readFree(payer)).toBe('1000')
      expect(await writeReversal(ports, claim, 'gone')).toBe(0n)
      expect(await readFree(payer)).toBe('0')
    })
  }))
