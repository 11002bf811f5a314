<?php
/**
 * The e-mails: two to buyers, two to the shop.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/** WooCommerce's note to a buyer, with our words in it. */
final class Buyer_Email extends \WC_Email_Customer_Note {
	/**
	 * One of both.
	 *
	 * @param string $id countersign_cleared or countersign_notice.
	 */
	public function __construct( string $id ) {
		parent::__construct();
		// The parent's text is for another e-mail.
		remove_action( 'woocommerce_new_customer_note_notification', array( $this, 'trigger' ) );
		$this->id          = $id;
		$this->title       = 'countersign_cleared' === $id ? __( 'Countersign: pay now', 'countersign-woocommerce' ) : __( 'Countersign: initial the notice', 'countersign-woocommerce' );
		$this->description = 'countersign_cleared' === $id
			? __( 'To a buyer whose order was cleared and is not paid, with the link to pay.', 'countersign-woocommerce' )
			: __( 'To a buyer who has to go through the notice, with the link: when an order was paid before, and when staff send it.', 'countersign-woocommerce' );
		$this->init_form_fields();
		$this->init_settings();
		$this->enabled    = $this->get_option( 'enabled', 'yes' );
		$this->email_type = $this->get_option( 'email_type', 'html' );
	}

	/** The subject. */
	public function get_default_subject() {
		return 'countersign_cleared' === $this->id
			? __( 'Your notice is recorded: you can pay for order #{order_number} now', 'countersign-woocommerce' )
			: __( 'Your order #{order_number} needs a legal notice', 'countersign-woocommerce' );
	}

	/** The heading. */
	public function get_default_heading() {
		return 'countersign_cleared' === $this->id ? __( 'You can pay now', 'countersign-woocommerce' ) : __( 'One step is missing', 'countersign-woocommerce' );
	}

	/**
	 * Send it.
	 *
	 * @param \WC_Order $order The order.
	 */
	public function send_about( $order ): void {
		$words = __( 'Your notice is recorded, and your order can be paid now:', 'countersign-woocommerce' );
		if ( 'countersign_notice' === $this->id ) {
			$words = $order->get_date_paid()
				? __( 'We have your payment. Before we can send your order, you read and initial a legal notice, and may have to show who you are. Nothing is charged again:', 'countersign-woocommerce' )
				: __( 'Before you can pay for your order, you read and initial a legal notice, and may have to show who you are. Nothing is charged until then:', 'countersign-woocommerce' );
		}
		$this->trigger(
			array( 'order_id' => $order->get_id(), 'customer_note' => $words . "\n" . $order->get_checkout_payment_url() )
		);
	}
}

/** An order is not cleared any more, or something does not work. */
final class Shop_Email extends \WC_Email {
	/** @var string[] What it says, and where to look. */
	private $words = array( '', '' );

	/**
	 * One of both.
	 *
	 * @param string $id countersign_stopped or countersign_broken.
	 */
	public function __construct( string $id ) {
		$stopped            = 'countersign_stopped' === $id;
		$this->id           = $id;
		$this->title        = $stopped ? __( 'Countersign: do not ship', 'countersign-woocommerce' ) : __( 'Countersign: it does not work', 'countersign-woocommerce' );
		$this->description  = $stopped ? __( 'To the shop, when an order that was cleared is not any more.', 'countersign-woocommerce' ) : __( 'To the shop, once a day while the key is refused or messages of the service do not come.', 'countersign-woocommerce' );
		$this->placeholders = array( '{order_number}' => '' );
		parent::__construct();
		$this->recipient = $this->get_option( 'recipient', get_option( 'admin_email' ) );
	}

	/** The subject. */
	public function get_default_subject() {
		return 'countersign_stopped' === $this->id ? __( 'Do not ship order #{order_number}', 'countersign-woocommerce' ) : __( 'Countersign does not work in your shop', 'countersign-woocommerce' );
	}

	/** The heading. */
	public function get_default_heading() {
		return $this->get_default_subject();
	}

	/**
	 * Send it about an order.
	 *
	 * @param \WC_Order $order The order.
	 */
	public function send_about( $order ): void {
		$words = $order->has_status( 'completed' )
			/* translators: %s: why */
			? __( 'The order was completed, and is not cleared any more: %s. If its parcel can still be called back, do so:', 'countersign-woocommerce' )
			/* translators: %s: why */
			: __( 'The order is not cleared any more: %s. Do not ship it. If it was paid, refund it, or have it cleared:', 'countersign-woocommerce' );
		$this->object                         = $order;
		$this->placeholders['{order_number}'] = $order->get_order_number();
		$this->send_words( sprintf( $words, Words::why( $order ) ), $order->get_edit_order_url() );
	}

	/**
	 * Send it.
	 *
	 * @param string $words What it says.
	 * @param string $url   Where to look.
	 */
	public function send_words( string $words, string $url ): void {
		$this->setup_locale();
		$this->words = array( $words, $url );
		if ( $this->is_enabled() && $this->get_recipient() ) {
			$this->send( $this->get_recipient(), $this->get_subject(), $this->get_content(), $this->get_headers(), $this->get_attachments() );
		}
		$this->restore_locale();
	}

	/** The e-mail, in the shop's frame. */
	public function get_content_html() {
		list( $words, $url ) = $this->words;
		return WC()->mailer()->wrap_message( $this->get_heading(), wpautop( esc_html( $words ) ) . '<p><a href="' . esc_url( $url ) . '">' . esc_html( $url ) . '</a></p>' );
	}

	/** The same without a frame. */
	public function get_content_plain() {
		return implode( "\n\n", $this->words ) . "\n";
	}

	/** The settings: those of all, and who gets it. */
	public function init_form_fields() {
		parent::init_form_fields();
		$this->form_fields['recipient'] = array(
			'title'       => __( 'Recipients', 'countersign-woocommerce' ),
			'type'        => 'text',
			'description' => __( 'E-mail addresses, with commas between them.', 'countersign-woocommerce' ),
			'default'     => get_option( 'admin_email' ),
		);
	}
}
