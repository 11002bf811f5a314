<?php
/**
 * Which e-mails are sent when.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/** They are under WooCommerce → Settings → Emails, with WooCommerce's own templates. */
final class Emails {
	const LATER = 'countersign_pay_now';

	/** A buyer who is at the page for the payment pays within this time, and needs no e-mail about it. */
	const LATER_SECONDS = 10 * MINUTE_IN_SECONDS;

	/** Add the hooks. */
	public static function register(): void {
		add_filter( 'woocommerce_email_classes', array( self::class, 'add' ) );
		add_action( self::LATER, array( self::class, 'say_that_it_can_be_paid' ) );
		add_filter( 'woocommerce_email_enabled_customer_on_hold_order', array( self::class, 'is_on_hold_email_right' ), PHP_INT_MAX, 2 );
	}

	/**
	 * Add ours to those of the shop.
	 *
	 * @param array $emails Objects by name.
	 */
	public static function add( $emails ) {
		require_once __DIR__ . '/email-classes.php';
		return $emails + array(
			'countersign_cleared' => new Buyer_Email( 'countersign_cleared' ),
			'countersign_notice'  => new Buyer_Email( 'countersign_notice' ),
			'countersign_stopped' => new Shop_Email( 'countersign_stopped' ),
			'countersign_broken'  => new Shop_Email( 'countersign_broken' ),
		);
	}

	/**
	 * Send one of ours: cleared only later, if the order is not paid then.
	 *
	 * @param string    $name  cleared (to the buyer), notice (the link to it, to the buyer), or stopped (to the shop).
	 * @param \WC_Order $order The order.
	 */
	public static function send( string $name, $order ): void {
		if ( 'cleared' === $name ) {
			wp_schedule_single_event( time() + self::LATER_SECONDS, self::LATER, array( $order->get_id() ) );
			return;
		}
		self::trigger( $name, $order );
		if ( 'notice' === $name ) {
			$order->add_order_note( __( 'Countersign: the link to the notice was sent to the buyer.', 'countersign-woocommerce' ), 0, is_admin() );
		}
	}

	/**
	 * To a buyer who closed the window: the order is cleared, and still not paid.
	 *
	 * @param int $order_id The order.
	 */
	public static function say_that_it_can_be_paid( $order_id ): void {
		$order = Orders::find( (int) $order_id );
		if ( $order && $order->has_status( array( 'pending', 'failed' ) ) && $order->needs_payment() && in_array( Orders::state( $order ), State_Machine::RELEASED, true ) ) {
			self::trigger( 'cleared', $order );
		}
	}

	/**
	 * Send one of ours, unless the shop has taken it away.
	 *
	 * @param string    $name  See send().
	 * @param \WC_Order $order The order.
	 */
	private static function trigger( string $name, $order ): void {
		$email = WC()->mailer()->get_emails()[ "countersign_{$name}" ] ?? null;
		if ( $email ) {
			$email->send_about( $order );
		}
	}

	/**
	 * WooCommerce's own words are for an order that waits for its payment, and not for one that waits for the notice.
	 *
	 * @param bool           $enabled Whether it is sent.
	 * @param \WC_Order|null $order   The order.
	 */
	public static function is_on_hold_email_right( $enabled, $order ) {
		return $enabled && ( ! $order instanceof \WC_Order || Orders::was_cleared( $order ) );
	}
}
