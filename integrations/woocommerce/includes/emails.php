<?php
/**
 * Which e-mails are sent when.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/**
 * They are under WooCommerce → Settings → Emails, with WooCommerce's own templates.
 */
final class Emails {

	/**
	 * Add the hooks.
	 */
	public static function register(): void {
		add_filter( 'woocommerce_email_classes', array( self::class, 'add' ) );
		add_action( 'countersign_order_state', array( self::class, 'send' ), 10, 3 );
		add_filter( 'woocommerce_email_enabled_customer_on_hold_order', array( self::class, 'is_on_hold_email_right' ), PHP_INT_MAX, 2 );
		add_action( 'woocommerce_order_status_on-hold', array( self::class, 'ask_for_notice' ), 20, 2 );
	}

	/**
	 * Add ours to those of the shop.
	 *
	 * @param array $emails Objects by name.
	 */
	public static function add( $emails ) {
		require_once __DIR__ . '/buyer-email.php';
		require_once __DIR__ . '/shop-email.php';
		return $emails + array(
			'countersign_cleared' => new Buyer_Email( 'countersign_cleared' ),
			'countersign_notice'  => new Buyer_Email( 'countersign_notice' ),
			'countersign_stopped' => new Shop_Email(),
		);
	}

	/**
	 * Send one of ours.
	 *
	 * @param string    $id    Its name.
	 * @param \WC_Order $order The order.
	 */
	private static function trigger( string $id, $order ): void {
		$email = WC()->mailer()->get_emails()[ $id ] ?? null;
		if ( $email ) {
			$email->send_about( $order );
		}
	}

	/**
	 * To the buyer, if an unpaid order was cleared; to the shop, if a paid one is not cleared any more.
	 *
	 * @param \WC_Order $order  The order.
	 * @param string    $state  What it is now.
	 * @param string    $before What it was.
	 */
	public static function send( $order, string $state, string $before ): void {
		if ( 'cleared' === $state && $order->has_status( array( 'pending', 'failed' ) ) && $order->needs_payment() ) {
			self::trigger( 'countersign_cleared', $order );
		} elseif ( 'refused' === $state && 'cleared' === $before && $order->has_status( array( 'processing', 'on-hold' ) ) ) {
			self::trigger( 'countersign_stopped', $order );
		}
	}

	/**
	 * Send the buyer the link to the notice.
	 *
	 * @param \WC_Order $order The order.
	 */
	public static function send_notice( $order ): void {
		self::trigger( 'countersign_notice', $order );
		$order->add_order_note( __( 'Countersign: the link to the notice was sent to the buyer.', 'countersign-woocommerce' ), 0, is_admin() );
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

	/**
	 * In its place: what is missing is the notice. Not to a buyer who was refused or has declined: that is for staff to decide.
	 *
	 * @param int       $order_id The order.
	 * @param \WC_Order $order    The order.
	 */
	public static function ask_for_notice( $order_id, $order ): void {
		if ( ! Orders::was_cleared( $order ) && ! in_array( Orders::state( $order ), array( 'refused', 'declined' ), true ) ) {
			self::send_notice( $order );
		}
	}
}
