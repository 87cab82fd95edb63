import type { Database } from '../../packages/server/src/database/database.ts'
import type { Tenancy } from '../../packages/server/src/services/applications/tenancy.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import type { PaymentPorts, Way } from '../../packages/server/src/services/payments/purchase.ts'
import type { TestService } from '../support/service.ts'

/** Where a process dies: at its step of this number, before or after the step took effect. */
export type Death = { readonly step: number; readonly when: 'before' | 'after' }

export type Dying = {
  readonly payments: Payments
  /** The steps that were begun, by name. */
  readonly steps: () => readonly string[]
}

class Died extends Error {}

/**
 * The payments of a process that dies at one of its steps to the outside (a statement, a call of the facilitator,
 * an append): from then on nothing that it does has any effect, and nothing that it remembers is left.
 */
export function dyingPayments(ports: PaymentPorts, death: Death | undefined): Dying {
  const steps: string[] = []
  let dead = false
  const step = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    if (dead) throw new Died(name)
    steps.push(name)
    const isLast = death !== undefined && steps.length - 1 === death.step
    if (isLast) dead = true
    if (isLast && death.when === 'before') throw new Died(name)
    const result = await work()
    if (dead) throw new Died(name)
    return result
  }
  const { system } = ports.tenancy
  const chain = {
    head: () => system.chain.head(),
    whenApplied: (height: number) => system.chain.whenApplied(height),
    append: (...given: Parameters<typeof system.chain.append>) =>
      step('append', () => system.chain.append(...given)),
  }
  const database: Database = {
    ...ports.database,
    query: (statement, options) =>
      step(nameOf(statement.text), () => ports.database.query(statement, options)),
    execute: (statement) => step(nameOf(statement.text), () => ports.database.execute(statement)),
  }
  const ways = ports.ways.map(
    ({ network, facilitator, native }): Way => ({
      network,
      facilitator: {
        verify: (...given) => step('verify', () => facilitator.verify(...given)),
        findUse: (...given) => step('lookup', () => facilitator.findUse(...given)),
        settle: (...given) => step('settle', () => facilitator.settle(...given)),
        lookup: (...given) => step('lookup', () => facilitator.lookup(...given)),
      },
      ...(native && {
        native: {
          find: (...given) => step('verify', () => native.find(...given)),
          settle: (...given) => step('settle', () => native.settle(...given)),
        },
      }),
    }),
  )
  // Payments use nothing else of them.
  const tenancy = { system: { ...system, chain } } as unknown as Tenancy
  return { payments: new Payments({ ...ports, database, ways, tenancy }), steps: () => steps }
}

/** Puts other payments in the place of the service's own, as a restart does. */
export function replacePayments(service: TestService, payments: Payments): void {
  Object.assign(service.running.service, { payments })
}

function nameOf(text: string): string {
  const words = text.trim().split(/\s+/)
  const table = /"(claim|kept_reply|sale|settled_payment)"/.exec(text)?.[1] ?? ''
  return `${words[0]} ${table}`.trim()
}
