import type { HttpReply } from '../http/reply.ts'
import type { Tenant } from '../services/applications/tenants.ts'
import type { Uses } from '../services/call.ts'
import type { AnswerPaidWrite } from '../services/payments/payment-ports.ts'
import type { WriteForm } from '../services/payments/quotes/write-answer-form.ts'
import type { StoredGroup } from '../services/records/stored-records.ts'
import { answerPaidBatch } from './batch/execute-batch.ts'
import { answerBlobWrite } from './blobs/store-blob-row.ts'
import { answerEncryption } from './encryption/update-encryption.ts'
import { answerStore } from './records/store-records.ts'

/** Makes the function that answers paid writes from the log. */
export function makePaidWriteAnswerer(
  parts: Uses<'world' | 'database' | 'ticketKey'>,
): AnswerPaidWrite {
  return (tenant, form, group) => answerPaidWrite(parts, tenant, { form, group })
}

/** Answers a paid write from the log, as its operation would have: it was made, and its request is gone. */
async function answerPaidWrite(
  parts: Uses<'world' | 'database' | 'ticketKey'>,
  tenant: Tenant,
  { form, group }: { readonly form: WriteForm; readonly group: StoredGroup },
): Promise<HttpReply> {
  switch (form.operation) {
    case 'store':
      return answerStore(parts, tenant, { wait: form.wait, group })
    case 'batch':
      return answerPaidBatch(tenant, form.steps, group)
    case 'upload': {
      const key = String(group.entries[0]?.header.key)
      return answerBlobWrite(parts, tenant, { key, wait: form.wait, verb: 'stored', group })
    }
    case 'encryption':
      return answerEncryption(parts, tenant)
  }
}
