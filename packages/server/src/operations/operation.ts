import type { OperationId, Tollbase } from '@tollbase/contract/contract'
import type { Input, Reply } from '@tollbase/contract/route'
import type { HttpReply } from '../http/reply.ts'
import type { Call } from '../services/call.ts'

/** The type of the function that serves an endpoint: its input and its reply come from the contract. */
export type Operation<Id extends OperationId> = (
  call: Call,
  input: Input<Tollbase[Id]>,
) => Promise<Reply<Tollbase[Id]> | HttpReply>
