/** A network to be quoted in a 402. Nobody pays on it, so it need not exist. */
export const idleNetwork = {
  network: 'base-sepolia',
  pay_to: `0x${'22'.repeat(20)}`,
  minimum_payment: 1,
  facilitator_url: 'http://127.0.0.1:9',
} as const
