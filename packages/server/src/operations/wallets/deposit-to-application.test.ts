import { createData } from '@tollbase/testing/data'
import { idleNetwork } from '@tollbase/testing/idle-network'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('depositToApplication', () =>
  withService(
    (service) => {
      test('a deposit is asked at exactly its amount, from the least that it may have on', async () => {
        const app = await createData(service())
        const deposit = (amount: string) => app.call('POST', '/wallet/deposit', { amount })
        const { status, body } = await deposit('1000')
        expect([status, body.accepts[0].maxAmountRequired]).toEqual([402, '1000'])
        const less = await deposit('999')
        expect([less.status, less.body.details?.field]).toEqual([400, '/amount'])
      })
    },
    { config: { networks: [idleNetwork] } },
  ))
